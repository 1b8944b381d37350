"""Admission responses: allowed or denied, with warnings, within the API server's limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus

from pydantic import JsonValue

from snaploom.errors import SnaploomError
from snaploom.models.finding import Finding
from snaploom_operator.admission.request import REVIEW_VERSION, AdmissionRequest
from snaploom_operator.objects import JsonObject

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
        """True if the request is allowed."""
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
