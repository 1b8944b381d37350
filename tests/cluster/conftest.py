"""Clusters, images and namespaces that the tests of this folder share.

Messages of resources that `chaos` broke are printed at the end, for review of their wording.
"""

import itertools
import json
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client import ApiException, CustomObjectsApi
from kubernetes.config import new_client_from_config
from support.cluster.chaosnamespace import CLAIM, ChaosNamespace
from support.cluster.chart import NAMESPACE
from support.cluster.cluster import Cluster, running_control_plane
from support.cluster.images import (
    BUILD,
    ImageFiles,
    each_image,
    image_archive,
    parts_of,
    unpacked,
)  # fmt: skip
from support.cluster.wholecluster import OwnCluster, Stages, own_cluster

from snaploom.models.common import API_VERSION, GROUP, VERSION
from snaploom.models.kinds import KIND_BY_NAME

Raw = dict[str, Any]
Images = Callable[[str], ImageFiles]
REFUSED = (400, 422)
"""Bad request (a field that is unknown, or of another type) and unprocessable entity."""


class Judge:
    """The API server as a judge of objects; quicker than a kubectl for each."""

    def __init__(self, kubeconfig: Path) -> None:
        self._client = new_client_from_config(config_file=str(kubeconfig))
        self._objects = CustomObjectsApi(self._client)

    def complaint(self, kind: str, spec: Raw, name: str = "a") -> str:
        """Its objection to an object; empty when it would store it as it is."""
        try:
            self._try(kind, spec, name, "Strict")
        except ApiException as answer:
            if answer.status not in REFUSED:
                raise
            return str(json.loads(answer.body)["message"])
        return ""

    def kept(self, kind: str, spec: Raw) -> Raw:
        result: Raw = self._try(kind, spec, "a", "Ignore")["spec"]
        return result

    def _try(self, kind: str, spec: Raw, name: str, unknown_fields: str) -> Raw:
        body = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
        result: Raw = self._objects.create_namespaced_custom_object(
            GROUP,
            VERSION,
            "default",
            KIND_BY_NAME[kind].plural,
            body,
            dry_run="All",
            field_validation=unknown_fields,
        )
        return result

    def close(self) -> None:
        self._client.close()


@pytest.fixture(scope="session")
def judge(control_plane: Cluster) -> Iterator[Judge]:
    found = Judge(control_plane.kubeconfig)
    yield found
    found.close()


@pytest.fixture(scope="session")
def bare_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_control_plane(tmp_path_factory.mktemp("bare")) as plane:
        yield plane


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Images:
    """Unpacks images, each once; programs of another architecture are emulated."""

    @cache
    def of(image: str) -> ImageFiles:
        _, architecture = parts_of(image)
        done = subprocess.run(
            [BUILD.with_name("emulator"), architecture], stderr=subprocess.PIPE, text=True
        )
        if done.returncode != 0:
            pytest.skip(done.stderr)
        return unpacked(image_archive(image), tmp_path_factory.mktemp("image"), architecture)

    return of


@pytest.fixture(params=each_image("operator"))
def operator_image(request: pytest.FixtureRequest, images: Images) -> ImageFiles:
    return images(request.param)


@pytest.fixture(params=each_image("spark", "spark-comet"))
def each_spark(request: pytest.FixtureRequest, images: Images) -> ImageFiles:
    return images(request.param)


@pytest.fixture(params=each_image("operator", "spark", "spark-comet"))
def image(request: pytest.FixtureRequest, images: Images) -> ImageFiles:
    return images(request.param)


CHAOS_NAMESPACES = tuple(f"chaos-{number}" for number in range(1, 25))
_messages: list[str] = []
_lasted: list[str] = []


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnCluster]:
    """The cluster, with the operator at work."""
    stages = Stages()
    with own_cluster(tmp_path_factory.mktemp("chaos"), stages) as found:
        found.whole.create_namespaces(NAMESPACE, *CHAOS_NAMESPACES)
        with stages.stage("chart installed"):
            found.whole.install(*CHAOS_NAMESPACES)
        _lasted.append(stages.table())
        yield found


@pytest.fixture(scope="session")
def names() -> Iterator[str]:
    return iter(CHAOS_NAMESPACES)


@pytest.fixture
def chaos(
    own: OwnCluster, names: Iterator[str], request: pytest.FixtureRequest
) -> Iterator[ChaosNamespace]:
    """A namespace with a day of data; its declarations are deleted afterwards."""
    name = next(names)
    made = ChaosNamespace(own, name, own.volumes / f"{name}-{CLAIM}")
    made.prepare()
    yield made
    _messages.extend(f"{request.node.name}\n    {line}" for line in made.messages)
    made.kubectl("delete", "snaploom,sparkapplications,pods", "--all", "--wait=false")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _messages:
        terminalreporter.section("messages of broken resources")
        terminalreporter.write_line("\n".join(itertools.chain(_lasted, _messages)))
