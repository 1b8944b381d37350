"""The AdmissionReview request, parsed once.

Unknown fields are ignored, as Kubernetes requires: a newer API server may send more.
"""

from __future__ import annotations

from collections.abc import Container
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue, StringConstraints, ValidationError

from snaploom.models.base import ApiModel
from snaploom.models.common import GROUP
from snaploom.models.kinds import KIND_BY_NAME
from snaploom_operator.errors import ReviewUnreadable
from snaploom_operator.objectmetadata import metadata_of

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
        """True if the object is of one of our kinds."""
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
            hint="let only API servers call the webhook (a NetworkPolicy restricts others)",
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
