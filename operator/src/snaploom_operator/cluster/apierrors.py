"""Maps error responses of the API server to `snaploom_operator.errors`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue
from pydantic_core import from_json

from snaploom_operator.errors import (
    ApiUnavailable,
    ClusterError,
    NamespaceTerminating,
    NotAllowed,
    ObjectChanged,
    ObjectExists,
    ObjectMissing,
    ObjectRefused,
    ResourceUnknown,
    TooManyRequests,
    WatchExpired,
)
from snaploom_operator.objectmetadata import mapping_in, objects_in, text_in
from snaploom_operator.objects import JsonObject

LONGEST_MESSAGE = 1_000
"""Characters of the server's message in an error: schema violations can be endless."""
SHORTEST_WAIT = 1.0
"""Seconds to wait after a 429 without `Retry-After`."""

NO_ANSWER = "try again; if it stays, check the API server, and the network and proxies before it"
"""The remedy for an API server that does not answer, or not as one."""
_HINTS: Mapping[type[ClusterError], str] = {
    ApiUnavailable: NO_ANSWER,
    ClusterError: NO_ANSWER,
    NamespaceTerminating: "use another namespace, or wait until this one is gone and create it",
    ObjectChanged: "try again: the object was written by another client meanwhile",
    ObjectExists: "choose another name, or delete the object that has it",
    ObjectRefused: "correct what the API server names: a field, a quota, or a policy's rule",
    ResourceUnknown: "install the CustomResourceDefinition of this kind; for Snaploom's: "
    "snaploom crds | kubectl apply --server-side -f -",
    WatchExpired: "nothing: everything is listed again",
}

_DENIALS = ("denied the request", "denied request")
"""Texts in denials of webhooks and of ValidatingAdmissionPolicies, which choose their status
code."""


@dataclass(frozen=True)
class RequestTarget:
    """The verb and object of a request."""

    verb: str
    """`list`, `get`, `create`, `replace`, `patch`, `delete` or `watch`."""
    plural: str
    name: str
    """Empty where no object is named."""

    @property
    def is_write(self) -> bool:
        """True for a write."""
        return self.verb not in ("list", "get", "watch")

    def __str__(self) -> str:
        return f"{self.verb} {self.plural}{f'/{self.name}' if self.name else ''}"


@dataclass(frozen=True)
class _Status:
    message: str
    reason: str
    kind: str
    """Plural of the kind that it is about."""
    name: str
    causes: tuple[JsonObject, ...]
    wait: float | None
    """Seconds."""


def failure_of(
    target: RequestTarget, code: int, body: bytes, retry_after: str | None
) -> ClusterError:
    """The error of a response of status 400 or more, whose body is usually a `Status` object."""
    status = _parsed(body)
    message = f"{target}: {status.message or f'HTTP {code}'}"
    if code == 429:
        return TooManyRequests(message, after=_wait(retry_after, status))
    kind = _class_of(target, code, status)
    return kind(message, hint=_hint(kind, target))


def _class_of(target: RequestTarget, code: int, status: _Status) -> type[ClusterError]:
    if code >= 500:
        return ApiUnavailable
    if target.is_write and any(words in status.message for words in _DENIALS):
        return ObjectRefused
    match code:
        case 401:
            return NotAllowed
        case 403:
            return _forbidden(target, status)
        case 404:
            return _not_found(target, status)
        case 409:
            return ObjectExists if status.reason == "AlreadyExists" else ObjectChanged
        case 410:
            return WatchExpired
        case 422 if _is_about_uid(status):
            return ObjectChanged
        case 400 | 413 | 415 | 422:
            return ObjectRefused
        case _:
            return ClusterError


def _hint(kind: type[ClusterError], target: RequestTarget) -> str:
    """The remedy; the operator itself tries again, a person at a command has to."""
    if kind is NotAllowed:
        return (
            f"allow this account to {target.verb} {target.plural}: "
            f"`kubectl auth can-i {target.verb} {target.plural}` shows whether it may"
        )
    if kind is ObjectMissing:
        return f"check name and namespace: `kubectl get {target.plural}` lists those there are"
    return _HINTS[kind]


def _forbidden(target: RequestTarget, status: _Status) -> type[ClusterError]:
    if any(text_in(cause, "reason") == "NamespaceTerminating" for cause in status.causes):
        return NamespaceTerminating
    # Authorisation and admission (quotas, pod security) share this code; only the former names
    # the user: `... is forbidden: User "system:..." cannot create resource "configmaps" ...`.
    is_authorisation = 'User "' in status.message and '" cannot ' in status.message
    return NotAllowed if is_authorisation or not target.is_write else ObjectRefused


def _not_found(target: RequestTarget, status: _Status) -> type[ClusterError]:
    if target.verb == "create" and status.kind == "namespaces":
        return NamespaceTerminating
    return ObjectMissing if status.name else ResourceUnknown


def _is_about_uid(status: _Status) -> bool:
    """Return whether the UID did not match, which the API server reports as an invalid change."""
    fields = {text_in(cause, "field") for cause in status.causes}
    return fields == {"metadata.uid"}


def _wait(retry_after: str | None, status: _Status) -> float:
    if retry_after is not None and retry_after.strip().isdigit():
        return max(float(retry_after), SHORTEST_WAIT)
    return max(status.wait or 0.0, SHORTEST_WAIT)


def _parsed(body: bytes) -> _Status:
    try:
        raw: JsonValue = from_json(body)
    except ValueError:
        raw = None
    if not isinstance(raw, dict) or raw.get("kind") != "Status":
        return _Status(_truncated(body.decode(errors="replace").strip()), "", "", "", (), None)
    details = mapping_in(raw, "details")
    wait = details.get("retryAfterSeconds")
    return _Status(
        message=_truncated(text_in(raw, "message")),
        reason=text_in(raw, "reason"),
        kind=text_in(details, "kind"),
        name=text_in(details, "name"),
        causes=tuple(objects_in(details, "causes")),
        wait=float(wait) if isinstance(wait, int) else None,
    )


def _truncated(message: str) -> str:
    return message if len(message) <= LONGEST_MESSAGE else message[: LONGEST_MESSAGE - 1] + "…"
