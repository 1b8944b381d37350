"""The judgement on one object: what it is refused for, and what its author is warned of.

Refused is what is wrong by itself, or contradicts what exists. What is missing, or does not fit
what it refers to, may be put right by the next object of the same `kubectl apply`, and what would
break others may be the first half of a change in two steps (ruling D13): both are warnings, and the
resource concerned stalls with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from pydantic import JsonValue

from snaploom.loading.documents import read_object
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.finding import Finding, Severity, errors_of
from snaploom.models.kinds import KIND_BY_NAME
from snaploom.models.resource import Resource
from snaploom.planning.sqlgate.facts import SqlJudge
from snaploom.planning.validation.validator import validate
from snaploom_operator.admission.answers import PASSED, Answer, Refusal, warning_text
from snaploom_operator.admission.breaking import (
    Neighbourhood,
    broken_by,
    dragged_along,
    restructured,
)
from snaploom_operator.admission.contradictions import contradictions
from snaploom_operator.admission.request import AdmissionRequest
from snaploom_operator.admission.surroundings import Surroundings
from snaploom_operator.knowledge.parsing import parse_resource
from snaploom_operator.metadata import metadata_of, text_in
from snaploom_operator.objects import JsonObject
from snaploom_operator.observing.clusterrules import cluster_findings
from snaploom_operator.settings import ProtectDependants

NAMES_SHOWN = 5
"""Names of dependants in one sentence."""
_CONTRADICTIONS = frozenset({"SL155", "SL174", "SL181"})
"""Findings of validation about what `contradictions` judges."""


@dataclass(frozen=True)
class Submission:
    """An object that is to be created or changed, and that can be read."""

    resource: Resource
    """As it is to be."""
    before: Resource | None
    """As it is; None for a new one, and for one that cannot be read."""


def read_submission(request: AdmissionRequest) -> Submission | Answer:
    """The object of a request, or the refusal of one that cannot be read."""
    read = read_object(_declared(request.new or {}, request.namespace))
    if read.resource is None:
        return Answer(Refusal(read.findings))
    return Submission(read.resource, _before(request.old))


def _declared(sent: JsonObject, namespace: str) -> dict[str, JsonValue]:
    """What its author declares: without a status, and without who manages which field."""
    metadata = {key: value for key, value in metadata_of(sent).items() if key != "managedFields"}
    if namespace:
        metadata["namespace"] = namespace
    declared = {key: value for key, value in sent.items() if key != "status"}
    return {**declared, "metadata": metadata}


def _before(old: JsonObject | None) -> Resource | None:
    if old is None or text_in(old, "kind") not in KIND_BY_NAME:
        return None
    content = parse_resource(old)
    return content if isinstance(content, Resource) else None


def review(
    submission: Submission,
    around: Surroundings,
    protect: ProtectDependants,
    *,
    judge_sql: SqlJudge,
    allow_jdbc_url: bool = False,
    allow: Allowances = NO_ALLOWANCES,
) -> Answer:
    """The judgement on an object that is to be created or changed.

    Args:
        submission: the object.
        around: what else there is.
        protect: whether a change that breaks others is refused.
        judge_sql: gives the facts of texts of SQL.
        allow_jdbc_url: whether the operator's settings allow whole JDBC URLs.
        allow: what declarations may use beyond the built-in lists.
    """
    resource, identity = submission.resource, submission.resource.identity
    now = (*around.near, *_listed(submission.before))
    before = Neighbourhood(now, around.broken, allow, judge_sql)
    after = Neighbourhood((*around.near, resource), around.broken, allow, judge_sql)
    findings = after.findings([identity])
    refused = (
        *_by_itself(resource, findings, allow, judge_sql),
        *cluster_findings(resource, allow_jdbc_url=allow_jdbc_url, allow=allow),
        *contradictions(resource, submission.before, around),
    )
    told = {(finding.code, finding.path) for finding in refused}
    doubtful = [
        finding
        for finding in findings
        if finding.code not in _CONTRADICTIONS and (finding.code, finding.path) not in told
    ]
    if refused:
        return Answer(Refusal(refused), _warnings(doubtful))
    broken = (
        *broken_by(before, after, around.dependants),
        *dragged_along(submission.before, before, doubtful, around.dependants),
    )
    if broken and protect is ProtectDependants.DENY:
        refusal = Refusal(broken, _breaking(broken), HTTPStatus.FORBIDDEN, "Forbidden")
        return Answer(refusal, _warnings(doubtful))
    history = () if errors_of(doubtful) else restructured(before, after, [identity])
    return Answer(
        warnings=(
            *_warnings(doubtful),
            *_warnings(history),
            *((_breaking(broken),) if broken else ()),
            *_warnings(broken),
            *_unjudged(around),
        )
    )


def _listed(resource: Resource | None) -> tuple[Resource, ...]:
    return () if resource is None else (resource,)


def _by_itself(
    resource: Resource, findings: Iterable[Finding], allow: Allowances, judge_sql: SqlJudge
) -> tuple[Finding, ...]:
    """Errors that stay whatever else there is."""
    if not errors_of(findings):
        return ()
    alone = validate(
        [resource], missing_reference=Severity.WARNING, allow=allow, judge_sql=judge_sql
    )
    return tuple(finding for finding in errors_of(alone) if finding.code not in _CONTRADICTIONS)


def _warnings(findings: Iterable[Finding]) -> tuple[str, ...]:
    return tuple(warning_text(finding) for finding in findings)


def _breaking(findings: Iterable[Finding]) -> str:
    names = sorted({finding.resource for finding in findings})
    them = "it stalls until that is mended" if len(names) == 1 else "they stall until it is mended"
    return f"this change breaks {named(names)}; {them}"


def _unjudged(around: Surroundings) -> tuple[str, ...]:
    if not around.unjudged:
        return ()
    looked_at = len(around.dependants)
    return (
        f"what this change means for others was looked at in {looked_at} of "
        f"{looked_at + around.unjudged} resources that name this one",
    )


def review_deletion(request: AdmissionRequest, users: Sequence[str]) -> Answer:
    """The judgement on a deletion: always let through, with a warning where others need it.

    Args:
        request: the deletion.
        users: identities of the resources that name it.
    """
    if not users:
        return PASSED
    stall = "it stalls" if len(users) == 1 else "they stall"
    identity = f"{request.kind.kind}/{request.name}"
    return Answer(
        warnings=(f"{identity} is used by {named(users)}; {stall} until it is there again",)
    )


def named(identities: Sequence[str]) -> str:
    """The first of some resources, and how many more there are."""
    shown = ", ".join(identities[:NAMES_SHOWN])
    more = len(identities) - NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
