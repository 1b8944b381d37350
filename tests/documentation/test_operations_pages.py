"""Pages about operations: their commands print what they show, and what they refer to exists."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml
from generation.chartvalues import Values
from support.cluster.cluster import ControlPlane
from support.declared.declarations import Raw
from support.declared.fulldeclarations import RUN, an_index, complete_file
from support.documentation.examples import BIN
from support.documentation.pagecommands import run, run_blocks
from support.documentation.pages import DOCS, Command, blocks_of, commands_of
from support.operator.operatorprocess import WORKS, operator_process

from snaploom.models.run import RunSettings
from snaploom_operator.submit.local import FINALIZER

OPERATING, HOW_TO = DOCS / "operating", DOCS / "how-to"
ROOM = "data"
"""The namespace of the page about recovery."""
WITH_VALUES = [
    *sorted(OPERATING.glob("*.md")),
    *(DOCS / f"how-to/{name}.md" for name in ("install", "admission")),
]
A_RUN_THAT_IS_HELD: Raw = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "run-1", "namespace": ROOM, "finalizers": [FINALIZER]},
}
"""A local run whose operator does not come back."""
KEYS = {field.alias or name for name, field in Values.model_fields.items()}
PREPARED = (
    Command("kubectl apply --server-side --filename my-model/model.yaml", ("...",)),
    Command(
        "kubectl wait outputdataset/orders-wide --for=condition=Ready --timeout=300s",
        ("outputdataset.snaploom.io/orders-wide condition met",),
    ),
)
"""What there is when the page begins: two snapshots, published from the cluster, and an index."""


def kubectl_on_path(plane: ControlPlane, folder: Path) -> Path:
    """A folder with a program `kubectl`, which uses the namespace of the page."""
    plane.kubectl("create", "namespace", ROOM)
    plane.kubectl("config", "set-context", "--current", "--namespace", ROOM)
    program = folder / "kubectl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {" ".join(plane.kubectl.program)} "$@"\n')
    program.chmod(0o755)
    return folder


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)
def test_recovery_prints_what_the_page_shows(own_control_plane, tmp_path, monkeypatch):
    programs, folder = kubectl_on_path(own_control_plane, tmp_path / "programs"), tmp_path / "home"
    folder.mkdir()
    own_control_plane.install_crds()
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    monkeypatch.setenv("KUBECONFIG", str(own_control_plane.kubeconfig))
    monkeypatch.setenv("HOME", str(folder))
    place = (tmp_path / "operator", own_control_plane.kubeconfig, "default")
    with operator_process(*place, "--local", watchNamespaces=[ROOM]) as operator:
        operator.await_output(WORKS)
        status = run(Command("snaploom init my-model", ("...",)), folder)
        model = folder / "my-model"
        complete_file(model / "model.yaml", an_index("orders-wide", model))
        for command in (*PREPARED, *commands_in(OPERATING / "backup.md")):
            status = run(command, folder, status)
    restored = own_control_plane.kubectl.get("outputdataset", "orders-wide", ROOM)["spec"]["run"]
    model_uri = f"{(folder / 'my-model/checkpoints').as_uri()}/"
    resumed = {**RUN, "checkpointUri": model_uri, "adoptFolder": True}
    del resumed["suspend"]
    assert restored == resumed


def recipes_in(page: Path) -> list[str]:
    """The `bash` blocks of a page, without what needs Helm: other tests install the chart."""
    texts = (block.text for block in blocks_of(page) if block.language == "bash")
    return ["\n".join(line for line in text.splitlines() if not line.startswith("helm "))
            for text in texts]  # fmt: skip


def by_shell(text: str, folder: Path) -> str:
    """What a recipe prints; every command of it has to end well."""
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", text],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.long
@pytest.mark.timeout(600)
def test_recipes_for_kubectl_work_on_resources_with_every_section(
    own_control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = kubectl_on_path(own_control_plane, tmp_path / "programs")
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    monkeypatch.setenv("KUBECONFIG", str(own_control_plane.kubeconfig))
    for name in ("team-a", "snaploom-system"):
        own_control_plane.kubectl("create", "namespace", name)
    by_shell("snaploom init my-model", tmp_path)
    model = tmp_path / "my-model"
    complete_file(model / "model.yaml", an_index("orders-wide", model))
    by_shell("kubectl apply --server-side --filename my-model/model.yaml", tmp_path)
    held, pause, everything, release = recipes_in(OPERATING / "uninstall.md")
    assert "orders-wide" in by_shell(held, tmp_path)
    by_shell(pause, tmp_path)
    stored = own_control_plane.kubectl.get("outputdataset", "orders-wide", ROOM)
    assert stored["metadata"]["annotations"]["snaploom.io/paused"] == "true"
    by_shell(release.replace("NAME", "orders-wide"), tmp_path)
    for recipe in recipes_in(OPERATING / "multi-tenancy.md"):
        by_shell(recipe, tmp_path)
    for recipe in read_only_recipes():
        assert by_shell(recipe, tmp_path)
    unblock = recipes_in(HOW_TO / "run-the-operator-on-a-laptop.md")[3]
    own_control_plane.kubectl.apply(A_RUN_THAT_IS_HELD)
    own_control_plane.kubectl("delete", "configmap", "run-1", "--wait=false")
    by_shell(unblock.replace("RUN", "run-1"), tmp_path)
    assert "run-1" not in own_control_plane.kubectl("get", "configmap", "--output", "name")
    for text in policies_in(OPERATING / "network.md"):
        own_control_plane.kubectl("apply", "--filename", "-", stdin=text)
    by_shell(everything, tmp_path)
    assert "snaploom.io" not in own_control_plane.kubectl("get", "crd", "--output", "name")


def read_only_recipes() -> list[str]:
    """Commands of `kubectl` that show resources and local runs, about the output of the test."""
    watching = recipes_in(HOW_TO / "watch-the-operator.md")[1]
    applications = recipes_in(HOW_TO / "run-the-operator-on-a-laptop.md")[2]
    lines = [*watching.splitlines(), applications]
    commands = [line.replace("flights-wide", "orders-wide") for line in lines if line.strip()]
    # Without a run there is nothing to list; kubectl prints that to standard error.
    return [f"{line.partition('#')[0]} 2>&1" for line in commands]


def policies_in(page: Path) -> list[str]:
    texts = [block.text for block in blocks_of(page) if block.text.startswith("apiVersion:")]
    assert texts, page
    return texts


def test_recipes_are_tried_on_every_section_of_run() -> None:
    names = {field.alias or name for name, field in RunSettings.model_fields.items()}
    assert {*RUN, "checkpointUri"} == names


def commands_in(page: Path) -> list[Command]:
    """The commands of its `console` blocks, in order."""
    blocks = (block for block in blocks_of(page) if block.language == "console")
    return [command for block in blocks for command in commands_of(block)]


def values_in(page: Path) -> list[str]:
    blocks = (block for block in blocks_of(page) if block.language == "text" and block.lines)
    return [block.text for block in blocks if block.lines[0].partition(":")[0] in KEYS]


def test_answer_about_foreign_yaml_prints_what_the_page_shows(tmp_path: Path) -> None:
    run_blocks(OPERATING / "may-i-run-this.md", tmp_path)


def test_values_of_the_chart_that_pages_show_are_values() -> None:
    shown = [text for page in WITH_VALUES for text in values_in(page)]
    assert len(shown) > 4
    for text in shown:
        Values.parse(yaml.safe_load(text))
