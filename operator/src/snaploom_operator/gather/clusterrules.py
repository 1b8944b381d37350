"""Rules that are errors in a cluster and only warnings locally.

Everyone with read access to resources can read a password in a spec (rule R16), a JDBC URL can have
options through which a driver runs code (rule W6), and `localhost` is the pod of a job.
"""

from __future__ import annotations

from collections.abc import Iterable

from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.datasource import DataSource
from snaploom.models.finding import Finding, Severity
from snaploom.models.resource import Resource
from snaploom.models.skippingindex import SkippingIndex
from snaploom.planning.addresses import job_rules
from snaploom.planning.secretdetection import SECRET_CODE, secret_findings
from snaploom.planning.sources.registry import declared
from snaploom.planning.validation.skippingindex import server_findings


def cluster_findings(
    resource: Resource,
    validated: Iterable[Finding] | None = None,
    *,
    allow_jdbc_url: bool = False,
    allow: Allowances = NO_ALLOWANCES,
) -> tuple[Finding, ...]:
    """An error for everything in a resource that this cluster does not accept.

    `validated` are its findings of `validate`, secrets included; None if it was not validated.
    """
    if validated is None:
        validated = secret_findings(resource)
    secrets = _as_errors(each for each in validated if each.code == SECRET_CODE)
    if isinstance(resource, SkippingIndex):
        return (*server_findings(resource, job_rules(allow)), *secrets)
    if not isinstance(resource, DataSource):
        return secrets
    of_kind = declared(resource).cluster_findings(allow_jdbc_url=allow_jdbc_url)
    return (*_as_errors(of_kind), *secrets)


def _as_errors(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(each.model_copy(update={"severity": Severity.ERROR}) for each in findings)
