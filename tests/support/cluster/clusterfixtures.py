"""Fixtures of a real cluster, for every folder of tests; the first test that asks starts it.

Tests marked `node` or `whole` are left out where a machine cannot have one; the end of the run
names them.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest
from support.cluster.cluster import (
    HOST_VARIABLE,
    WHOLE_VARIABLE,
    Cluster,
    ControlPlane,
    any_cluster,
    running_control_plane,
)
from support.cluster.clusterkubectl import Kubectl
from support.cluster.clusternode import what_is_missing
from support.cluster.wholecluster import IMAGES

LEFT_OUT = pytest.StashKey[str]()
_OUTPUT = "left_out"
"""Under what a process of several sends the first what it left out."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs a node where there can be none."""
    reasons = {item: missing for item in items if (missing := _missing(item))}
    if reasons:
        items[:] = [item for item in items if item not in reasons]
        config.hook.pytest_deselected(items=list(reasons))
        lines = {
            f"Not run: {item.location[0]}, for want of {why}." for item, why in reasons.items()
        }
        text = "\n".join(sorted(lines))
        config.stash[LEFT_OUT] = text
        getattr(config, "workeroutput", {})[_OUTPUT] = text


def _missing(item: pytest.Item) -> str:
    """What this machine lacks for a test; empty when it can run it."""
    is_whole = item.get_closest_marker("whole") is not None
    if is_whole and WHOLE_VARIABLE in os.environ:
        needs_host = "bucket" in getattr(item, "fixturenames", ())
        return HOST_VARIABLE if needs_host and HOST_VARIABLE not in os.environ else ""
    if is_whole or item.get_closest_marker("node") is not None:
        has_images = any(map(item.get_closest_marker, ("whole", "chaos", "images")))
        return ", ".join(what_is_missing(Path(gettempdir()), IMAGES if has_images else 0))
    return ""


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object | None) -> None:
    """Take what one of several processes left out; each leaves out the same."""
    if text := getattr(node, "workeroutput", {}).get(_OUTPUT, ""):
        node.config.stash[LEFT_OUT] = text


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if text := config.stash.get(LEFT_OUT, ""):
        terminalreporter.write_line(text)


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One cluster with our CRDs for all tests of a process: ours, or the one that was given."""
    with any_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def own_control_plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane of the test's own, with our CRDs, whose servers it may stop and start."""
    with running_control_plane(tmp_path / "cluster") as plane:
        plane.install_crds()
        yield plane


@pytest.fixture
def namespace(control_plane: Cluster) -> Iterator[str]:
    """A namespace of the test's own."""
    name = control_plane.create_namespace()
    yield name
    control_plane.delete_namespace(name)


@pytest.fixture
def kubectl(control_plane: Cluster) -> Kubectl:
    return control_plane.kubectl
