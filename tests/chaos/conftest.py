"""A cluster with a node, our chart in it, and a namespace of its own for each thing that breaks.

What broken resources said is printed at the end, for those who want to know how it reads.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from support.chaosroom import CLAIM, Room
from support.chart import NAMESPACE
from support.stages import Stages
from support.wholecluster import OwnCluster, own_cluster

ROOMS = tuple(f"room-{number}" for number in range(1, 25))
_told: list[str] = []
_lasted: list[str] = []


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnCluster]:
    """The cluster, with the operator at work."""
    stages = Stages()
    with own_cluster(tmp_path_factory.mktemp("chaos"), stages) as found:
        found.whole.create_namespaces(NAMESPACE, *ROOMS)
        with stages.stage("chart installed"):
            found.whole.install(found.whole.values(*ROOMS))
        _lasted.append(stages.table())
        yield found


@pytest.fixture(scope="session")
def names() -> Iterator[str]:
    """Names of namespaces that nobody has used."""
    return iter(ROOMS)


@pytest.fixture
def room(own: OwnCluster, names: Iterator[str], request: pytest.FixtureRequest) -> Iterator[Room]:
    """A room with a day of data; what is declared in it is gone afterwards."""
    name = next(names)
    made = Room(own, name, own.volumes / f"{name}-{CLAIM}")
    made.furnish()
    yield made
    _told.extend(f"{request.node.name}\n    {line}" for line in made.told)
    made.kubectl("delete", "snaploom,sparkapplications,pods", "--all", "--wait=false")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was said."""
    if _told:
        terminalreporter.section("what broken resources said")
        terminalreporter.write_line("\n".join(itertools.chain(_lasted, _told)))
