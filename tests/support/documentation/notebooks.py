"""Notebooks, executed in a kernel of this Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

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
