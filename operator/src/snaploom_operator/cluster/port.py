"""The port to the Kubernetes API: verbs, errors, kinds, and forms of what is sent."""

import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from pydantic import JsonValue

from snaploom.models.common import API_VERSION, GROUP, NANOS_PER_MICROSECOND, EpochNanos
from snaploom.models.kinds import KINDS
from snaploom_operator.objects import JsonObject


@dataclass(frozen=True)
class ApiResource:
    """A kind of objects, as in API paths."""

    group: str
    """Empty for the core group."""
    version: str
    plural: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


@dataclass(frozen=True)
class Listing:
    """All objects of a kind at one resourceVersion."""

    items: tuple[JsonObject, ...]
    resource_version: str


@dataclass(frozen=True)
class Page(Listing):
    """A page of a list, of the same resourceVersion as its other pages."""

    is_first: bool
    """Whether it is the first page of a list; a list that expired starts again."""


class Cluster(Protocol):
    """The Kubernetes API as the operator uses it."""

    async def list(
        self, resource: ApiResource, *, namespace: str | None = None, selector: str = ""
    ) -> Listing:
        """List all objects of a kind; namespace None for all namespaces.

        Raises:
            ResourceUnknown: the cluster has no such kind.
        """

    def pages(
        self, resource: ApiResource, *, namespace: str | None = None, selector: str = ""
    ) -> AsyncGenerator[Page, None]:
        """List page by page, so that not all objects of a kind are in memory at once.

        Raises:
            ResourceUnknown: the cluster has no such kind.
        """

    async def get(self, resource: ApiResource, namespace: str, name: str) -> JsonObject:
        """Read one object.

        Raises:
            ObjectMissing: it does not exist.
        """

    async def schemas(self) -> Mapping[str, JsonObject]:
        """Read the OpenAPI schemas by which our kinds are served, by kind.

        Raises:
            ResourceUnknown: none of them is served.
        """

    async def create(
        self, resource: ApiResource, namespace: str, manifest: JsonObject
    ) -> JsonObject:
        """Create an object; the stored object.

        Raises:
            ObjectExists: an object of this name exists.
            ObjectRefused: schema, admission webhook or quota refused it.
            NamespaceTerminating: the namespace is being deleted, or deleted.
        """

    async def replace(
        self, resource: ApiResource, namespace: str, manifest: JsonObject
    ) -> JsonObject:
        """Replace an object; its `metadata.resourceVersion` must be the current one.

        Raises:
            ObjectChanged: it was changed since it was read.
            ObjectMissing: it does not exist.
        """

    async def patch(
        self,
        resource: ApiResource,
        namespace: str,
        name: str,
        patch: JsonObject,
        *,
        subresource: str = "",
    ) -> JsonObject:
        """Apply a JSON merge patch; `metadata.resourceVersion` and `metadata.uid` in it must match.

        Of a status the API server checks the version only, which no two objects of a kind share.

        Raises:
            ObjectChanged: it was changed or recreated since it was read.
            ObjectMissing: it does not exist.
        """

    async def delete(self, resource: ApiResource, namespace: str, name: str, *, uid: str) -> None:
        """Delete an object in the background if it has this UID; a missing object is ignored."""


OURS = {
    kind.name: ApiResource(GROUP, API_VERSION.rpartition("/")[2], kind.plural, kind.name)
    for kind in KINDS
}
"""Our six kinds by name."""

OPENAPI = ApiResource("", "v3", "openapi", "OpenAPI")
"""The description of our kinds: no resource, and at a path of its own."""
CONFIG_MAPS = ApiResource("", "v1", "configmaps", "ConfigMap")
NAMESPACES = ApiResource("", "v1", "namespaces", "Namespace")
PODS = ApiResource("", "v1", "pods", "Pod")
SECRETS = ApiResource("", "v1", "secrets", "Secret")
"""The only Secret that is read is the webhook's certificate."""
EVENTS = ApiResource("events.k8s.io", "v1", "events", "Event")
LEASES = ApiResource("coordination.k8s.io", "v1", "leases", "Lease")
VALIDATING_WEBHOOKS = ApiResource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
)
SPARK_APPLICATIONS = ApiResource(
    "sparkoperator.k8s.io", "v1beta2", "sparkapplications", "SparkApplication"
)
"""Applications of the Kubeflow Spark operator."""
APACHE_SPARK_APPLICATIONS = ApiResource(
    "spark.apache.org", "v1", "sparkapplications", "SparkApplication"
)
"""Applications of the Apache Spark Kubernetes operator."""
WORKLOADS = ApiResource("kueue.x-k8s.io", "v1beta2", "workloads", "Workload")
"""Requests for quota in queues of Kueue."""
TOKEN_REVIEWS = ApiResource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview")
"""A question to the API server, which stores nothing: whose token it is."""
ACCESS_REVIEWS = ApiResource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview"
)
"""A question to the API server, which stores nothing: whether a user has a right."""


def difference(before: JsonObject, after: JsonObject) -> dict[str, JsonValue]:
    """The merge patch from one object to another; empty if they are equal.

    Removed members are null. A changed list is replaced as a whole, and null members of `after`
    count as missing: merge patches cannot express more.
    """
    patch: dict[str, JsonValue] = {
        key: None for key, value in before.items() if value is not None and after.get(key) is None
    }
    for key, value in after.items():
        held = before.get(key)
        if isinstance(held, dict) and isinstance(value, dict):
            if inner := difference(held, value):
                patch[key] = inner
        elif value is not None and not _is_same(held, value):
            patch[key] = value
    return patch


def _is_same(before: JsonValue, after: JsonValue) -> bool:
    """As JSON: Python holds True for equal to 1."""
    if isinstance(before, str) or isinstance(after, str):
        return before == after
    return json.dumps(before, sort_keys=True) == json.dumps(after, sort_keys=True)


_MICROS_PER_SECOND = 1_000_000


def format_micro_time(instant: EpochNanos) -> str:
    """`2020-01-01T00:00:00.000000Z`: the API server refuses any other number of digits."""
    seconds, micros = divmod(instant // NANOS_PER_MICROSECOND, _MICROS_PER_SECOND)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{micros:06}Z"
