"""Notebooks of `examples/notebooks` run from the first cell to the last, and keep no outputs."""

import json
import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode
from support.documentation.examples import REPOSITORY, copy_example

DEADLINE = 300
"""Seconds for one cell on a machine that is busy with other tests: the first run starts Spark."""


def executed(path: Path) -> NotebookNode:
    """A notebook with the outputs of all cells; a cell that fails is an error.

    It runs in the folder that it lies in, as in Jupyter.
    """
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=DEADLINE, resources=resources).execute()
    return notebook


def shown(notebook: NotebookNode, part: str) -> str:
    """What the cells print and draw that contain a text."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code" and part in cell.source]
    assert cells, part
    return "\n".join(text for cell in cells for output in cell.outputs for text in _texts(output))


def _texts(output: Any) -> list[str]:
    return [output.get("text", ""), *map(str, output.get("data", {}).values())]


FOLDER = REPOSITORY / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_notebooks_keep_no_outputs_and_are_listed() -> None:
    readme = (FOLDER / "README.md").read_text("utf-8")
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text("utf-8"))["cells"]
        assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells), path
        assert path.name in readme


@pytest.mark.spark
@pytest.mark.slow
def test_first_steps_draw_plan_and_run_in_a_kernel(tmp_path: Path) -> None:
    example = copy_example("customer", tmp_path)
    folder = Path(shutil.copytree(FOLDER, example.checkout / "examples" / "notebooks"))
    results = executed(folder / "first-steps.ipynb")
    assert "nothing is wrong" in shown(results, "project.validate()")
    assert "<svg" in shown(results, "offline=True")
    assert "2024-02-29T00:00:00Z" in shown(results, "project.run(")
    assert "% matched" in shown(results, "project.status(")
    assert "brad" in shown(results, "january.selectExpr")
    assert "2 snapshots, 0 faults" in shown(results, "project.check(")


@pytest.mark.spark
@pytest.mark.slow
def test_comparison_shows_what_a_correction_changes(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FOLDER, tmp_path / "notebooks"))
    results = executed(folder / "compare-data.ipynb")
    assert "kind: OutputDataset" in shown(results, "to_yaml")
    assert "data.amount" in shown(results, "@dry-run")
    assert "12.5" in shown(results, "@dry-run")
    assert "manifest" in shown(results, "versions.rows")
