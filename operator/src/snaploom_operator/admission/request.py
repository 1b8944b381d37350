"""What the API server asks: one AdmissionReview, parsed once.

Fields that are not read here are passed over, as Kubernetes asks of every client: a newer API
server may send more.
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
from snaploom_operator.metadata import metadata_of
from snaploom_operator.objects import JsonObject

REVIEW_VERSION = "admission.k8s.io/v1"
LARGEST_BODY = 3 * 1024 * 1024
"""Bytes of a review. The API server takes objects up to 1.5 MiB, and an update sends two."""

MOST_VALUES = 100_000
"""Values of a review, counted by what parts them. So many take half a second to
read; a body of nothing but `[],[],` would take ten, with everybody else waiting."""


class Operation(StrEnum):
    """What is being done to the object."""

    CREATE = "CREATE"
    """It is new."""
    UPDATE = "UPDATE"
    """It is changed."""
    DELETE = "DELETE"
    """It is deleted."""
    CONNECT = "CONNECT"
    """Somebody connects to it; our kinds have nothing to connect to."""


class _Sent(ApiModel):
    model_config = ConfigDict(extra="ignore")


class GroupVersionKind(_Sent):
    """A kind of objects."""

    group: str = ""
    """API group."""
    version: str
    """Version."""
    kind: str
    """Kind."""


class UserInfo(_Sent):
    """Who asks."""

    username: str = ""
    """Name of the user or service account."""


class AdmissionRequest(_Sent):
    """What is to be judged."""

    uid: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    """Identity of the request; the answer repeats it."""
    kind: GroupVersionKind
    """Kind of the object."""
    operation: Operation
    """What is being done."""
    sub_resource: str = ""
    """Part of the object that is written, such as `status`; empty for the object."""
    name: str = ""
    """Name; empty where the API server is yet to make one."""
    namespace: str = ""
    """Namespace."""
    user_info: UserInfo = UserInfo()
    """Who asks."""
    new: dict[str, JsonValue] | None = Field(default=None, alias="object")
    """The object as it is to be; omitted for a deletion."""
    old: dict[str, JsonValue] | None = Field(default=None, alias="oldObject")
    """The object as it is; omitted for a creation."""

    @property
    def is_about_ours(self) -> bool:
        """Whether the object is of one of our kinds."""
        return self.kind.group == GROUP and self.kind.kind in KIND_BY_NAME


class AdmissionReview(_Sent):
    """The envelope."""

    api_version: Literal["admission.k8s.io/v1"]
    """Version of the API."""
    kind: Literal["AdmissionReview"]
    """Kind of the envelope."""
    request: AdmissionRequest
    """What is to be judged."""


def parse_review(body: bytes) -> AdmissionRequest:
    """The request that a body carries.

    Raises:
        ReviewUnreadable: it is no JSON, or no AdmissionReview of the one version that there is.
    """
    values = sum(body.count(sign) for sign in (b",", b"[", b"{"))
    if values > MOST_VALUES:
        raise ReviewUnreadable(
            "this review has too many values",
            found=f"some {values:,}",
            expected=f"at most {MOST_VALUES:,}",
        )
    try:
        review = AdmissionReview.model_validate_json(body, strict=True, by_alias=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise ReviewUnreadable(
            "this is no review of one object",
            path=".".join(map(str, first["loc"])) or None,
            found=first["msg"],
            expected=f"an AdmissionReview of {REVIEW_VERSION}, as JSON",
        ) from None
    return review.request


def passes_unread(request: AdmissionRequest, passed_users: Container[str]) -> bool:
    """Whether a write is let through without a look.

    A status is the controller's; an object that is being deleted must be able to lose its
    finalizers, however wrong it is; and what does not touch the spec changes nothing that is
    judged here.
    """
    if not request.is_about_ours or request.operation is Operation.CONNECT:
        return True
    if request.sub_resource or request.user_info.username in passed_users:
        return True
    if request.operation is Operation.DELETE or request.new is None:
        return False
    if metadata_of(request.new).get("deletionTimestamp"):
        return True
    return request.operation is Operation.UPDATE and _same_spec(request.old, request.new)


def _same_spec(old: JsonObject | None, new: JsonObject) -> bool:
    return old is not None and "spec" in old and old["spec"] == new.get("spec")
