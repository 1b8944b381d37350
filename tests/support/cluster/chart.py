"""The chart as Helm renders it, read back as objects."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from support.servers.gotools import go_tool

from snaploom_operator.settings import OperatorSettings

REPOSITORY = Path(__file__).parents[3]
CHART = REPOSITORY / "charts" / "snaploom"
RELEASE = "snaploom"
NAMESPACE = "snaploom-system"
KUBERNETES = "1.34.4"

Raw = dict[str, Any]
Values = Mapping[str, Any]


class HelmFailed(Exception):
    """Helm ended with a code other than 0; its output is the message."""


def helm(*arguments: str | Path, values: Values | None = None, **environment: str) -> str:
    """What Helm prints.

    Args:
        arguments: what stands behind `helm`.
        values: values of the chart; Helm reads them as a file.
        environment: variables of the process, such as KUBECONFIG.

    Raises:
        HelmFailed: it ended with a code other than 0.
    """
    given = [] if values is None else ["--values", "-"]
    done = subprocess.run(
        [go_tool("helm"), *arguments, *given],
        input=json.dumps(dict(values or {})),  # JSON is YAML
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise HelmFailed(done.stderr.strip())
    return done.stdout


def render_text(
    values: Values,
    *,
    chart: Path = CHART,
    kubernetes: str = KUBERNETES,
    release: str = RELEASE,
    namespace: str = NAMESPACE,
) -> str:
    """The manifest that Helm would install."""
    where = ["--namespace", namespace, "--kube-version", kubernetes]
    return helm("template", release, chart, *where, values=values)


@dataclass(frozen=True)
class Rendered:
    """The objects of a release."""

    objects: Sequence[Raw]

    @classmethod
    def of(cls, values: Values, **options: Any) -> Rendered:
        """The objects that some values give."""
        documents = yaml.load_all(render_text(values, **options), Loader=yaml.CSafeLoader)
        return cls([each for each in documents if each])

    def of_kind(self, *kinds: str) -> list[Raw]:
        """Every object of some kinds."""
        return [each for each in self.objects if each["kind"] in kinds]

    def one(self, kind: str, name: str) -> Raw:
        """The object of this kind and name."""
        (found,) = (each for each in self.of_kind(kind) if each["metadata"]["name"] == name)
        return found

    def names(self) -> set[tuple[str, str, str]]:
        """Kind, namespace and name of every object."""
        return {identity(each) for each in self.objects}

    def settings(self) -> OperatorSettings:
        """The settings that the pods read, parsed as they parse them."""
        (found,) = (each for each in self.of_kind("ConfigMap") if "settings.yaml" in each["data"])
        return OperatorSettings.parse(yaml.safe_load(found["data"]["settings.yaml"]))

    def pods(self) -> Iterator[tuple[str, Raw]]:
        """The pods: name of the object that has them, and their spec."""
        for each in self.objects:
            if each["kind"] == "Deployment":
                yield each["metadata"]["name"], each["spec"]["template"]["spec"]
            elif each["kind"] == "Pod":
                yield each["metadata"]["name"], each["spec"]

    def rules(self, component: str) -> list[Raw]:
        """Every rule of the roles of a component."""
        return [
            rule
            for role in self.of_kind("Role", "ClusterRole")
            if role["metadata"]["labels"].get("app.kubernetes.io/component") == component
            for rule in role["rules"]
        ]


def identity(stored: Raw) -> tuple[str, str, str]:
    """Kind, namespace and name of an object."""
    metadata = stored["metadata"]
    return stored["kind"], metadata.get("namespace", ""), metadata["name"]
