"""Rules that are errors in a cluster and only warnings locally.

Everyone with read access to resources can read a password in a spec (rule R16), a JDBC URL can have
options through which a driver runs code (rule W6), and `localhost` is the pod of a job.
"""

from __future__ import annotations

from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.codes import make_finding
from snaploom.models.datasource import DataSource
from snaploom.models.finding import Finding, Severity
from snaploom.models.resource import Resource
from snaploom.models.skippingindex import SkippingIndex
from snaploom.planning.addresses import job_rules
from snaploom.planning.secretdetection import secret_findings
from snaploom.planning.validation.skippingindex import server_findings


def cluster_findings(
    resource: Resource, *, allow_jdbc_url: bool = False, allow: Allowances = NO_ALLOWANCES
) -> tuple[Finding, ...]:
    """An error for everything in a resource that this cluster does not accept.

    Args:
        resource: what is declared.
        allow_jdbc_url: whether the operator's settings allow whole JDBC URLs.
        allow: what declarations may use beyond the built-in lists.
    """
    secrets = (
        finding.model_copy(update={"severity": Severity.ERROR})
        for finding in secret_findings(resource)
    )
    if isinstance(resource, SkippingIndex):
        return (*server_findings(resource, job_rules(allow)), *secrets)
    if not isinstance(resource, DataSource):
        return tuple(secrets)
    return (*_of_source(resource, allow_jdbc_url=allow_jdbc_url), *secrets)


def _of_source(source: DataSource, *, allow_jdbc_url: bool) -> tuple[Finding, ...]:
    jdbc = source.spec.jdbc
    if jdbc is None:
        return ()
    findings = []
    if jdbc.credentials is not None and jdbc.credentials.from_plaintext is not None:
        findings.append(
            _refusal(
                "SL143",
                "a password in a resource is readable by everyone who can read the resource",
                source,
                "spec.jdbc.credentials.fromPlaintext",
                hint="put it into a Secret, and name that in fromSecret",
            )
        )
    if jdbc.url is not None and not allow_jdbc_url:
        findings.append(
            _refusal(
                "SL144",
                "a JDBC URL is not accepted in this cluster: it could make the driver run code",
                source,
                "spec.jdbc.url",
                hint="use driver, host, port, database and options; or ask the administrator "
                "of the operator to set allowJdbcUrl",
            )
        )
    return tuple(findings)


def _refusal(code: str, message: str, resource: Resource, path: str, hint: str) -> Finding:
    finding = make_finding(code, message, resource=resource.identity, path=path, hint=hint)
    return finding.model_copy(update={"severity": Severity.ERROR})
