"""Pages for operating: what they show happens, and what they refer to exists."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from generation.chartvalues import Values
from support.cluster import ControlPlane
from support.operatorprocess import WORKS, operator_process
from support.pagecommands import run, run_blocks
from support.pages import DOCS, Command, blocks_of, commands_of

OPERATING = DOCS / "operating"
ROOM = "data"
"""The namespace of the page about recovery."""
WITH_VALUES = [
    *sorted(OPERATING.glob("*.md")),
    *(DOCS / f"how-to/{name}.md" for name in ("install", "admission")),
]
KEYS = {field.alias or name for name, field in Values.model_fields.items()}
PREPARED = (
    Command("snaploom init my-model", ("...",)),
    Command("kubectl apply --server-side --filename my-model/model.yaml", ("...",)),
    Command(
        "kubectl wait outputdataset/orders-wide --for=condition=Ready --timeout=300s",
        ("outputdataset.snaploom.io/orders-wide condition met",),
    ),
)
"""What there is when the page begins: two snapshots, published from the cluster."""


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
@pytest.mark.timeout(900)
def test_recovery_prints_what_it_says(
    own_control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs, folder = kubectl_on_path(own_control_plane, tmp_path / "programs"), tmp_path / "home"
    folder.mkdir()
    own_control_plane.install_crds()
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    monkeypatch.setenv("KUBECONFIG", str(own_control_plane.kubeconfig))
    monkeypatch.setenv("HOME", str(folder))
    place = (tmp_path / "operator", own_control_plane.kubeconfig, "default")
    with operator_process(*place, "--local", watchNamespaces=[ROOM]) as operator:
        operator.await_output(WORKS)
        status = 0
        for command in (*PREPARED, *commands_in(OPERATING / "backup.md")):
            status = run(command, folder, status)


def commands_in(page: Path) -> list[Command]:
    """The commands of its `console` blocks, in order."""
    blocks = (block for block in blocks_of(page) if block.language == "console")
    return [command for block in blocks for command in commands_of(block)]


def values_in(page: Path) -> list[str]:
    """The blocks of a page that begin with a value of the chart."""
    blocks = (block for block in blocks_of(page) if block.language == "text" and block.lines)
    return [block.text for block in blocks if block.lines[0].partition(":")[0] in KEYS]


def test_answer_about_yaml_of_others_prints_what_it_says(tmp_path: Path) -> None:
    run_blocks(OPERATING / "may-i-run-this.md", tmp_path)


def test_values_of_the_chart_that_pages_show_are_values() -> None:
    shown = [text for page in WITH_VALUES for text in values_in(page)]
    assert len(shown) > 4
    for text in shown:
        Values.parse(yaml.safe_load(text))
