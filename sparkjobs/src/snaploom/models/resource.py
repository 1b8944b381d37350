"""The envelope of every resource: version, kind and metadata, as Kubernetes writes them."""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import MaxLen
from pydantic import Field, JsonValue, StringConstraints

from snaploom.models.base import ApiModel
from snaploom.models.common import API_VERSION, ResourceName, StringMap
from snaploom.models.variables import Variables

_Text = Annotated[str, StringConstraints(max_length=1024)]
_AnnotationText = Annotated[str, StringConstraints(max_length=262_144)]  # Kubernetes' own limit


class ObjectMeta(ApiModel):
    """Metadata of a resource; all but name, namespace, labels and annotations is the cluster's."""

    name: ResourceName
    """Name, unique per kind (and namespace)."""
    namespace: Annotated[_Text, Variables("a name")] | None = None
    """Namespace; references never leave it."""
    labels: StringMap = Field(default_factory=dict)
    """Labels."""
    annotations: Annotated[dict[_Text, _AnnotationText], MaxLen(256)] = Field(default_factory=dict)
    """Annotations."""
    generate_name: _Text | None = None
    """Set by the cluster."""
    uid: _Text | None = None
    """Set by the cluster."""
    resource_version: _Text | None = None
    """Set by the cluster."""
    generation: int | None = None
    """Set by the cluster: counts changes of the spec."""
    creation_timestamp: _Text | None = None
    """Set by the cluster."""
    deletion_timestamp: _Text | None = None
    """Set by the cluster."""
    deletion_grace_period_seconds: int | None = None
    """Set by the cluster."""
    finalizers: Annotated[tuple[_Text, ...], MaxLen(64)] = ()
    """Set by controllers."""
    owner_references: Annotated[tuple[JsonValue, ...], MaxLen(64)] = ()
    """Set by controllers."""
    managed_fields: Annotated[tuple[JsonValue, ...], MaxLen(256)] = ()
    """Set by the cluster."""
    self_link: _Text | None = None
    """Set by old clusters."""


class Resource(ApiModel):
    """The parts of every kind besides its spec."""

    api_version: Literal["snaploom.io/v1alpha1"] = API_VERSION
    """Version of the API."""
    kind: str
    """Name of the kind."""
    metadata: ObjectMeta
    """Name, labels and the cluster's additions."""

    @property
    def name(self) -> str:
        """Name of the resource."""
        return self.metadata.name

    @property
    def identity(self) -> str:
        """`Kind/name`, as messages name it."""
        return f"{self.kind}/{self.metadata.name}"
