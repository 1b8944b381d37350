"""The chart's values of a Deployment: fragments of Kubernetes' own API among them.

What Kubernetes defines is passed through: its API server knows it better than a copy of its schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le, MaxLen
from pydantic import Field, StringConstraints

from snaploom.models.base import ApiModel

Fragment = Mapping[str, Any]
"""An object of Kubernetes' API, which is passed through."""
Text = Annotated[str, StringConstraints(max_length=1024)]
Texts = Annotated[Mapping[str, Text], MaxLen(256)]
Repository = Annotated[
    str,
    StringConstraints(
        max_length=255,
        pattern=r"^([A-Za-z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*$",
    ),
]
"""Registry and repository of an image, as the distribution specification has them; never empty."""
Tag = Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9_][A-Za-z0-9._-]{0,127})?$")]
"""Tag of an image, of at most 128 characters; empty where the chart makes one up."""
Digest = Annotated[str, StringConstraints(pattern=r"^(sha256:[a-f0-9]{64}|sha512:[a-f0-9]{128})?$")]
"""Digest of an image; empty where its tag counts."""
Argument = Annotated[str, StringConstraints(min_length=1, max_length=4096)]
"""An argument of our program; `_checks.tpl` refuses those that contradict the chart."""
Label = Annotated[
    str,
    StringConstraints(max_length=63, pattern=r"^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$"),
]
"""Value of a label, as the API server takes it."""
Labels = Annotated[Mapping[str, Label], MaxLen(256)]
Name = Annotated[
    str, StringConstraints(max_length=253, pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$")
]
"""Name of an object; empty where the chart makes one up."""
GivenName = Annotated[
    str, StringConstraints(max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
]
"""Name of an object; never empty."""


class Image(ApiModel):
    """A container image."""

    repository: Repository
    """Registry and repository, without tag and digest; never empty."""
    tag: Tag = ""
    """Tag; empty for the version of the chart's application."""
    digest: Digest = ""
    """Digest, `sha256:` and 64 hexadecimal digits; it is used instead of the tag."""


class PulledImage(Image):
    """The image of the pods of the operator and of the webhook."""

    repository: Repository = "snaploom-operator"
    """Registry and repository, without tag and digest; never empty."""
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    """When to pull the image."""


class PullSecret(ApiModel):
    """A Secret for pulling images."""

    name: GivenName
    """Its name."""


class ServiceAccount(ApiModel):
    """Who the pods are for the API server."""

    create: bool = True
    """Whether the chart creates the account; otherwise it must exist."""
    name: Name = ""
    """Its name; empty for one derived from the release's name."""
    annotations: Texts = Field(default_factory=dict)
    """Annotations, such as the cloud role that it stands for."""


class Resources(ApiModel):
    """What a container asks for, and what it may take at most."""

    requests: Fragment = Field(default_factory=dict)
    """What is set aside for it."""
    limits: Fragment = Field(default_factory=dict)
    """What it may take at most."""


class PodToleration(ApiModel):
    """Lets pods run on nodes with a taint."""

    key: Text | None = None
    """Key of the taint; omitted, every one."""
    operator: Literal["Exists", "Equal"] | None = None
    """How the value is compared."""
    value: Text | None = None
    """Value of the taint."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Effect of the taint; omitted, every one."""
    toleration_seconds: Annotated[int, Ge(0)] | None = None
    """How long NoExecute is tolerated."""


class Affinity(ApiModel):
    """Where pods should and should not run."""

    node_affinity: Fragment | None = None
    """Which nodes."""
    pod_affinity: Fragment | None = None
    """Beside which pods."""
    pod_anti_affinity: Fragment | None = None
    """Away from which pods."""


class PodVariable(ApiModel):
    """An environment variable."""

    name: Text
    """Its name."""
    value: Text | None = None
    """Its value."""
    value_from: Fragment | None = None
    """Where its value comes from."""


class PodMount(ApiModel):
    """Where a volume appears in the container."""

    name: Text
    """Name of the volume."""
    mount_path: Text
    """Folder in the container."""
    sub_path: Text | None = None
    """Folder in the volume."""
    read_only: bool | None = None
    """Whether it is mounted for reading only."""


class SecurityContext(ApiModel):
    """What the container may do: the restricted level of Kubernetes' pod security standards."""

    allow_privilege_escalation: bool = False
    """Whether a process may gain more rights than its parent."""
    read_only_root_filesystem: bool = True
    """Whether the image's files are read-only; `/tmp` is a volume of its own."""
    capabilities: Fragment = Field(default_factory=lambda: {"drop": ["ALL"]})
    """Capabilities of Linux."""


class PodSecurityContext(ApiModel):
    """What the pod may do: the restricted level of Kubernetes' pod security standards."""

    run_as_non_root: bool = True
    """Whether the user 0 is refused."""
    run_as_user: Annotated[int, Ge(1)] | None = None
    """User; omitted, the image's."""
    run_as_group: Annotated[int, Ge(1)] | None = None
    """Group; omitted, the image's."""
    fs_group: Annotated[int, Ge(1)] | None = None
    """Group of volumes."""
    seccomp_profile: Fragment = Field(default_factory=lambda: {"type": "RuntimeDefault"})
    """System calls that are allowed."""


class Probe(ApiModel):
    """How often a probe asks."""

    initial_delay_seconds: Annotated[int, Ge(0), Le(3600)] = 0
    """Wait before the first question."""
    period_seconds: Annotated[int, Ge(1), Le(3600)] = 10
    """Time between two questions."""
    timeout_seconds: Annotated[int, Ge(1), Le(3600)] = 5
    """How long an answer may take."""
    failure_threshold: Annotated[int, Ge(1), Le(100)] = 3
    """Failures in a row that count."""


class Pods(ApiModel):
    """The pods of one Deployment."""

    resources: Resources = Resources()
    """What a container asks for, and what it may take at most."""
    node_selector: Labels = Field(default_factory=dict)
    """Labels that a node must have."""
    tolerations: tuple[PodToleration, ...] = ()
    """Taints that are tolerated."""
    affinity: Affinity = Affinity()
    """Where pods should and should not run."""
    priority_class_name: Name = ""
    """Priority class; empty for the cluster's default."""
    labels: Labels = Field(default_factory=dict)
    """Labels of the pods besides ours."""
    annotations: Texts = Field(default_factory=dict)
    """Annotations of the pods besides ours."""
    extra_args: Annotated[tuple[Argument, ...], MaxLen(64)] = ()
    """Arguments of the program behind those of the chart. `--settings`, `--local`, `--kubeconfig`
    and `--context` are refused: the chart sets these."""
    env: tuple[PodVariable, ...] = ()
    """Environment variables of the container."""
    volumes: tuple[Fragment, ...] = ()
    """Volumes of the pods besides ours."""
    volume_mounts: tuple[PodMount, ...] = ()
    """Where these volumes appear in the container."""
    pod_security_context: PodSecurityContext = PodSecurityContext()
    """What the pod may do."""
    security_context: SecurityContext = SecurityContext()
    """What the container may do."""
    liveness_probe: Probe = Probe()
    """Liveness probe; a failing container is restarted."""
    readiness_probe: Probe = Probe(period_seconds=5)
    """How often is asked whether it is ready."""
    termination_grace_period_seconds: Annotated[int, Ge(0), Le(3600)] = 30
    """Time for a clean end."""
