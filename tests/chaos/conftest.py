"""A cluster with a node, our chart in it, and a namespace of its own for each thing that breaks.

Messages of broken resources are printed at the end, for review of their wording.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from support.cluster.chaosnamespace import CLAIM, ChaosNamespace
from support.cluster.chart import NAMESPACE
from support.cluster.stages import Stages
from support.cluster.wholecluster import OwnCluster, own_cluster

NAMESPACES = tuple(f"chaos-{number}" for number in range(1, 25))
_messages: list[str] = []
_lasted: list[str] = []


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnCluster]:
    """The cluster, with the operator at work."""
    stages = Stages()
    with own_cluster(tmp_path_factory.mktemp("chaos"), stages) as found:
        found.whole.create_namespaces(NAMESPACE, *NAMESPACES)
        with stages.stage("chart installed"):
            found.whole.install(*NAMESPACES)
        _lasted.append(stages.table())
        yield found


@pytest.fixture(scope="session")
def names() -> Iterator[str]:
    """Names of unused namespaces."""
    return iter(NAMESPACES)


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
    """Print the messages of broken resources."""
    if _messages:
        terminalreporter.section("messages of broken resources")
        terminalreporter.write_line("\n".join(itertools.chain(_lasted, _messages)))
