"""The review of one object: errors that deny it, and warnings.

Denied is what is invalid by itself or conflicts with existing resources. Missing or mismatched
references may be fixed by the next object of the same `kubectl apply`, and a breaking change may be
the first of two steps (rule R15): both are warnings, and the affected resource stalls with the
reason.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from pydantic import JsonValue

from snaploom.loading.documents import read_object
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.finding import Finding, Severity, errors_of
from snaploom.models.kinds import KIND_BY_NAME
from snaploom.models.resource import Resource
from snaploom.planning.judging.texts import TextJudge
from snaploom.planning.validation.validator import validate
from snaploom_operator.admission.answers import PASSED, Answer, Refusal, warning_text
from snaploom_operator.admission.breakingchanges import (
    ResourceSet,
    broken_by,
    newly_stalled,
    restructuring_findings,
)
from snaploom_operator.admission.contradictions import contradictions
from snaploom_operator.admission.request import AdmissionRequest
from snaploom_operator.admission.reviewcontext import ReviewContext
from snaploom_operator.gather.clusterrules import cluster_findings
from snaploom_operator.objectmetadata import metadata_of, text_in
from snaploom_operator.objects import JsonObject
from snaploom_operator.operatorsettings import ProtectDependants
from snaploom_operator.store.resourceparser import parse_resource

NAMES_SHOWN = 5
"""Names of dependants in one sentence."""
LONGEST_NAME, GENERATED = 63, 5
"""Characters of a name that the API server generates, and of what it adds to `generateName`."""
_CONTRADICTIONS = frozenset({"SL155", "SL174", "SL181"})
"""Findings of validation that `contradictions` reports itself."""


@dataclass(frozen=True)
class Submission:
    """A parsed object that is to be created or changed."""

    resource: Resource
    """The submitted object."""
    before: Resource | None
    """The stored object; None for a new one, and for an unparsable one."""


def read_submission(request: AdmissionRequest) -> Submission | Answer:
    """Parse the object of a request; a denial if that fails."""
    read = read_object(_declared(request.new or {}, request))
    if read.resource is None:
        return Answer(Refusal(read.findings))
    is_ours = request.old is not None and text_in(request.old, "kind") in KIND_BY_NAME
    before = parse_resource(request.old) if request.old is not None and is_ours else None
    return Submission(read.resource, before if isinstance(before, Resource) else None)


def _declared(sent: JsonObject, request: AdmissionRequest) -> dict[str, JsonValue]:
    """The object without status and managed fields; one without a name yet has one like it."""
    metadata = {key: value for key, value in metadata_of(sent).items() if key != "managedFields"}
    if request.namespace:
        metadata["namespace"] = request.namespace
    beginning = metadata.get("generateName")
    if not metadata.get("name") and isinstance(beginning, str) and beginning:
        # The API server adds five characters; those of the request are nobody's to choose.
        end = hashlib.sha256(request.uid.encode()).hexdigest()[:GENERATED]
        metadata["name"] = beginning[: LONGEST_NAME - GENERATED] + end
    declared = {key: value for key, value in sent.items() if key != "status"}
    return {**declared, "metadata": metadata}


def review(
    submission: Submission,
    context: ReviewContext,
    protect: ProtectDependants,
    *,
    judge_text: TextJudge,
    allow_jdbc_url: bool = False,
    allow: Allowances = NO_ALLOWANCES,
) -> Answer:
    """Review a create or an update, within the allow lists of the operator's settings."""
    resource, identity = submission.resource, submission.resource.identity
    stored = () if submission.before is None else (submission.before,)
    before, after = (
        ResourceSet((*context.near, *own), context.broken, allow, judge_text, context.others)
        for own in (stored, (resource,))
    )
    findings = after.findings([identity])
    refused = (
        *_by_itself(resource, findings, allow, judge_text),
        *cluster_findings(resource, allow_jdbc_url=allow_jdbc_url, allow=allow),
        *contradictions(resource, submission.before, context),
    )
    refused_at = {(finding.code, finding.path) for finding in refused}
    doubtful = [
        finding
        for finding in findings
        if finding.code not in _CONTRADICTIONS and (finding.code, finding.path) not in refused_at
    ]
    if refused:
        return Answer(Refusal(refused), _warnings(doubtful))
    broken = (
        *broken_by(before, after, context.dependants),
        *newly_stalled(submission.before, before, doubtful, context.dependants),
    )
    if broken and protect is ProtectDependants.DENY:
        refusal = Refusal(broken, _breaking(broken), HTTPStatus.FORBIDDEN, "Forbidden")
        return Answer(refusal, _warnings(doubtful))
    history = () if errors_of(doubtful) else restructuring_findings(before, after, [identity])
    return Answer(
        warnings=(
            *_warnings(doubtful),
            *_warnings(history),
            *((_breaking(broken),) if broken else ()),
            *_warnings(broken),
            *_unjudged(context),
        )
    )


def _by_itself(
    resource: Resource, findings: Iterable[Finding], allow: Allowances, judge_text: TextJudge
) -> tuple[Finding, ...]:
    if not errors_of(findings):
        return ()
    own_findings = validate(
        [resource], missing_reference=Severity.WARNING, allow=allow, judge_text=judge_text
    )
    return tuple(
        finding for finding in errors_of(own_findings) if finding.code not in _CONTRADICTIONS
    )


def _warnings(findings: Iterable[Finding]) -> tuple[str, ...]:
    return tuple(warning_text(finding) for finding in findings)


def _breaking(findings: Iterable[Finding]) -> str:
    names = sorted({finding.resource for finding in findings})
    them = "it stalls until that is fixed" if len(names) == 1 else "they stall until it is fixed"
    return f"this change breaks {named(names)}; {them}"


def _unjudged(context: ReviewContext) -> tuple[str, ...]:
    if not context.unjudged:
        return ()
    judged = len(context.dependants)
    return (
        f"the effect of this change on others was checked for {judged} of "
        f"{judged + context.unjudged} resources that refer to this one",
    )


def review_deletion(request: AdmissionRequest, users: Sequence[str]) -> Answer:
    """Review a deletion: always allowed, with a warning if resources (`users`) refer to it."""
    if not users:
        return PASSED
    stall = "it stalls" if len(users) == 1 else "they stall"
    identity = f"{request.kind.kind}/{request.name}"
    return Answer(
        warnings=(f"{identity} is used by {named(users)}; {stall} until it is there again",)
    )


def named(identities: Sequence[str]) -> str:
    """The first names of resources, and the number of the others."""
    shown = ", ".join(identities[:NAMES_SHOWN])
    more = len(identities) - NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
