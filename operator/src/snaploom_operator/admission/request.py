"""The AdmissionReview: its request, parsed once, and its answer within the API server's limits."""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue, StringConstraints, ValidationError

from snaploom.errors import SnaploomError
from snaploom.models.base import ApiModel
from snaploom.models.common import GROUP
from snaploom.models.findings import Finding
from snaploom.models.kinds import KIND_BY_NAME
from snaploom_operator.errors import ReviewUnreadable
from snaploom_operator.objects import JsonObject, metadata_of

REVIEW_VERSION = "admission.k8s.io/v1"
LARGEST_BODY = 3 * 1024 * 1024
"""Bytes of a review. The API server takes objects up to 1.5 MiB, and an update sends two."""

MOST_VALUES = 100_000
"""Values of a review, counted by their separators. So many take half a second to parse; a body of
`[],[],` only would take ten, and block all other reviews."""


class Operation(StrEnum):
    """The operation on the object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"
    """A connection to it; our kinds have none."""


class _Sent(ApiModel):
    model_config = ConfigDict(extra="ignore")


class GroupVersionKind(_Sent):
    """A kind of objects."""

    group: str = ""
    version: str
    kind: str


class UserInfo(_Sent):
    """The requesting user."""

    username: str = ""


class AdmissionRequest(_Sent):
    """The request to review."""

    uid: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    """Identity of the request; the answer repeats it."""
    kind: GroupVersionKind
    operation: Operation
    sub_resource: str = ""
    """Part of the object that is written, such as `status`; empty for the object."""
    name: str = ""
    """Name; empty if the API server generates it."""
    namespace: str = ""
    user_info: UserInfo = UserInfo()
    new: dict[str, JsonValue] | None = Field(default=None, alias="object")
    """The submitted object; omitted for a deletion."""
    old: dict[str, JsonValue] | None = Field(default=None, alias="oldObject")
    """The stored object; omitted for a creation."""

    @property
    def is_about_ours(self) -> bool:
        return self.kind.group == GROUP and self.kind.kind in KIND_BY_NAME


class AdmissionReview(_Sent):
    """The envelope."""

    api_version: Literal["admission.k8s.io/v1"]
    kind: Literal["AdmissionReview"]
    request: AdmissionRequest


def parse_review(body: bytes) -> AdmissionRequest:
    """Parse the request of a body.

    Raises:
        ReviewUnreadable: it is not a JSON AdmissionReview of the supported version.
    """
    values = sum(body.count(sign) for sign in (b",", b"[", b"{"))
    if values > MOST_VALUES:
        raise ReviewUnreadable(
            "this review has too many values",
            found=f"some {values:,}",
            expected=f"at most {MOST_VALUES:,}",
            hint="split the object: no API server accepts one of this size",
        )
    try:
        review = AdmissionReview.model_validate_json(body, strict=True, by_alias=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise ReviewUnreadable(
            "the request is not an AdmissionReview of one object",
            path=".".join(map(str, first["loc"])) or None,
            found=first["msg"],
            expected=f"an AdmissionReview of {REVIEW_VERSION}, as JSON",
        ) from None
    return review.request


def passes_unread(request: AdmissionRequest, passed_users: Container[str]) -> bool:
    """Return whether a request is allowed without a review.

    A status is the controller's; an object that is being deleted must be able to lose its
    finalizers even if it is invalid; and a write that leaves the spec unchanged changes nothing
    that is reviewed.
    """
    if not request.is_about_ours or request.operation is Operation.CONNECT:
        return True
    if request.sub_resource or request.user_info.username in passed_users:
        return True
    if request.operation is Operation.DELETE or request.new is None:
        return False
    if metadata_of(request.new).get("deletionTimestamp"):
        return True
    old = request.old if request.operation is Operation.UPDATE else None
    return old is not None and "spec" in old and old["spec"] == request.new.get("spec")


LONGEST_WARNING = 256
"""Characters of one warning; the API server truncates longer ones."""
LONGEST_WARNINGS = 4_096
"""Characters of all warnings together; the API server drops later ones."""
LONGEST_MESSAGE = 16_000
"""Characters of a denial: some fifty findings."""
_MORE_WARNINGS = 64
"""Characters reserved for the count of omitted warnings."""


@dataclass(frozen=True)
class Refusal:
    """The denial of a request."""

    findings: tuple[Finding, ...]
    """The errors."""
    opening: str = ""
    """Text before them; may be empty."""
    status: HTTPStatus = HTTPStatus.UNPROCESSABLE_ENTITY
    """HTTP status that the API server returns to the client."""
    reason: str = "Invalid"
    """Its reason, as in `metav1.Status`."""


@dataclass(frozen=True)
class Answer:
    """The response to a request."""

    refusal: Refusal | None = None
    """None if it is allowed."""
    warnings: tuple[str, ...] = ()
    """Warnings for the user; one line each."""

    @property
    def is_allowed(self) -> bool:
        return self.refusal is None


PASSED = Answer()
"""Allowed without warnings."""


def answer_document(request: AdmissionRequest, answer: Answer) -> JsonObject:
    """The AdmissionReview that carries an answer."""
    response: dict[str, JsonValue] = {"uid": request.uid, "allowed": answer.is_allowed}
    if answer.refusal is not None:
        response["status"] = _status(request, answer.refusal)
    if answer.warnings:
        response["warnings"] = list(clipped_warnings(answer.warnings))
    return {"apiVersion": REVIEW_VERSION, "kind": "AdmissionReview", "response": response}


def _status(request: AdmissionRequest, refusal: Refusal) -> dict[str, JsonValue]:
    causes: list[JsonValue] = [
        {"reason": "FieldValueInvalid", "field": finding.path, "message": _body(finding)}
        for finding in refusal.findings[:50]
    ]
    return {
        "message": refusal_text(refusal),
        "reason": refusal.reason,
        "code": refusal.status.value,
        "details": {
            "group": request.kind.group,
            "kind": request.kind.kind,
            "name": request.name,
            "causes": causes,
        },
    }


def refusal_text(refusal: Refusal) -> str:
    """The message of a denial: every finding, as the command line prints errors."""
    texts = [refusal.opening] if refusal.opening else []
    left = LONGEST_MESSAGE - sum(map(len, texts))
    for number, finding in enumerate(refusal.findings):
        text = finding_text(finding)
        left -= len(text)
        if left < 0 and number:
            texts.append(f"and {len(refusal.findings) - number} more")
            break
        texts.append(text[:LONGEST_MESSAGE])
    return "\n".join(texts)


def finding_text(finding: Finding) -> str:
    """One finding: resource, field path, what is wrong, found, expected, fix."""
    error = SnaploomError(
        f"{finding.message} ({finding.code})",
        resource=finding.resource or None,
        path=finding.path or None,
        found=finding.found or None,
        expected=finding.expected or None,
        hint=finding.hint or None,
    )
    return str(error)


def _body(finding: Finding) -> str:
    parts = {"found": finding.found, "expected": finding.expected, "fix": finding.hint}
    labelled = (f"{label}: {text}" for label, text in parts.items() if text)
    return "; ".join((finding.message, *labelled))


def warning_text(finding: Finding) -> str:
    """One finding as a warning, on one line."""
    place = " ".join(part for part in (finding.resource, finding.path) if part)
    found = f" (found {finding.found})" if finding.found else ""
    return f"{place}: {finding.message}{found}; {finding.hint}"


def clipped_warnings(warnings: Iterable[str]) -> tuple[str, ...]:
    """Warnings within the API server's limits: printable lines, each and all short enough."""
    texts = tuple(dict.fromkeys(warnings))
    kept: dict[str, None] = {}
    left = LONGEST_WARNINGS - _MORE_WARNINGS
    # Lines are written one by one: the event loop does this, and there may be thousands.
    for number, text in enumerate(texts):
        line = _line(text)
        left -= len(line) if line not in kept else 0
        if left < 0:
            return (*kept, f"and {len(texts) - number} more warnings")
        kept[line] = None
    return tuple(kept)


def _line(text: str) -> str:
    """One line without control characters, with which the API server drops a warning."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= LONGEST_WARNING else f"{line[: LONGEST_WARNING - 1]}…"
