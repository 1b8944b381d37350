"""Additions of users to the pods of driver and executors: bounded, and free of host access.

Volumes are claims, ConfigMaps, Secrets and empty folders; a hostPath is refused (rule R9).
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from annotated_types import Ge, Le, MaxLen
from pydantic import Field, StringConstraints, model_validator

from snaploom.models.base import ApiModel, CelRule, ListType, contradiction
from snaploom.models.common import ResourceName, ShortText, StringMap, UriText

_Key = Annotated[str, StringConstraints(min_length=1, max_length=253)]


class KeySelector(ApiModel):
    """A key of a Secret or ConfigMap of the same namespace."""

    name: ResourceName
    """Name of the object."""
    key: _Key
    """Key in it."""
    optional: bool = False
    """Whether it may be absent."""


class EnvironmentSource(ApiModel):
    """Where the value of an environment variable comes from."""

    one_of: ClassVar[tuple[str, ...]] = ("secretKeyRef", "configMapKeyRef")

    secret_key_ref: KeySelector | None = None
    """A key of a Secret."""
    config_map_key_ref: KeySelector | None = None
    """A key of a ConfigMap."""


class EnvironmentVariable(ApiModel):
    """An environment variable; secrets come by reference."""

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule("!has(self.value) || !has(self.valueFrom)", "give value or valueFrom, not both"),
    )

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$", max_length=253)]
    """Name of the variable."""
    value: Annotated[str, StringConstraints(max_length=8192)] | None = None
    """Its value; omitted together with `valueFrom`, the empty text."""
    value_from: EnvironmentSource | None = None
    """Where its value comes from."""

    @model_validator(mode="after")
    def _one_value(self) -> Self:
        if self.value is not None and self.value_from is not None:
            raise contradiction(
                "give value or valueFrom, not both",
                found="value and valueFrom",
                expected="one of the two",
                hint="remove one of the two",
            )
        return self


class ObjectName(ApiModel):
    """An object of the same namespace."""

    name: ResourceName
    """Its name."""
    optional: bool = False
    """Whether it may be absent."""


class EnvironmentObject(ApiModel):
    """All keys of a Secret or ConfigMap, as environment variables."""

    one_of: ClassVar[tuple[str, ...]] = ("secretRef", "configMapRef")

    secret_ref: ObjectName | None = None
    """A Secret."""
    config_map_ref: ObjectName | None = None
    """A ConfigMap."""
    prefix: Annotated[str, StringConstraints(max_length=253)] | None = None
    """Prefix of the variables' names."""


class ClaimVolume(ApiModel):
    """A PersistentVolumeClaim."""

    claim_name: ResourceName
    """Name of the claim."""
    read_only: bool = False
    """Whether it is mounted for reading only."""


class SecretVolume(ApiModel):
    """A Secret."""

    secret_name: ResourceName
    """Name of the Secret."""
    optional: bool = False
    """Whether it may be absent."""


class EmptyVolume(ApiModel):
    """An empty folder that lives as long as the pod."""

    medium: Literal["", "Memory"] = ""
    """Memory for a folder in memory."""
    size_limit: Annotated[str, StringConstraints(max_length=32)] | None = None
    """Largest size, such as `10Gi`."""


class Volume(ApiModel):
    """A volume of the pods."""

    one_of: ClassVar[tuple[str, ...]] = ("persistentVolumeClaim", "configMap", "secret", "emptyDir")

    name: ResourceName
    """Name of the volume."""
    persistent_volume_claim: ClaimVolume | None = None
    """A PersistentVolumeClaim."""
    config_map: ObjectName | None = None
    """A ConfigMap."""
    secret: SecretVolume | None = None
    """A Secret."""
    empty_dir: EmptyVolume | None = None
    """An empty folder."""


class VolumeMount(ApiModel):
    """Where a volume appears in the containers."""

    name: ResourceName
    """Name of the volume."""
    mount_path: Annotated[
        str, StringConstraints(min_length=1, max_length=2048, pattern=r"^/[^:]*$")
    ]
    """Folder in the container: absolute, without `:`."""
    sub_path: UriText | None = None
    """Folder in the volume."""
    read_only: bool = False
    """Whether it is mounted for reading only."""


class Toleration(ApiModel):
    """Lets pods run on nodes with a taint."""

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "has(self.key) || (has(self.operator) && self.operator == 'Exists')",
            "only the operator Exists may go without a key",
        ),
    )

    key: _Key | None = None
    """Key of the taint; omitted (with the operator Exists only), every one."""
    operator: Literal["Exists", "Equal"] = "Equal"
    """How the value is compared."""
    value: ShortText | None = None
    """Value of the taint."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Effect of the taint; omitted, every one."""
    toleration_seconds: Annotated[int, Ge(0), Le(31_536_000)] | None = None
    """How long NoExecute is tolerated."""

    @model_validator(mode="after")
    def _key_or_every(self) -> Self:
        if self.key is None and self.operator != "Exists":
            raise contradiction(
                "only the operator Exists may go without a key",
                found=f"operator {self.operator or 'Equal'}, and no key",
                expected="a key, or the operator Exists",
                hint="add `key`; to tolerate every taint, write `operator: Exists`",
            )
        return self


class PodTemplate(ApiModel):
    """Additions to the pods of driver and executors."""

    labels: StringMap = Field(default_factory=dict)
    """Labels."""
    annotations: StringMap = Field(default_factory=dict)
    """Annotations."""
    node_selector: StringMap = Field(default_factory=dict)
    """Labels that a node must have."""
    tolerations: Annotated[tuple[Toleration, ...], MaxLen(64), ListType("atomic")] = ()
    """Taints that are tolerated."""
    priority_class_name: ResourceName | None = None
    """Priority class."""
    env: Annotated[
        tuple[EnvironmentVariable, ...], MaxLen(128), ListType("map", keys=("name",))
    ] = ()
    """Environment variables."""
    env_from: Annotated[tuple[EnvironmentObject, ...], MaxLen(32), ListType("atomic")] = ()
    """Objects whose keys become environment variables."""
    volumes: Annotated[tuple[Volume, ...], MaxLen(64), ListType("map", keys=("name",))] = ()
    """Volumes."""
    volume_mounts: Annotated[
        tuple[VolumeMount, ...], MaxLen(64), ListType("map", keys=("mountPath",))
    ] = ()
    """Where the volumes appear."""
