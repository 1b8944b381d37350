"""An overlay of Kustomize gives the same resources as an environment of the project."""

from __future__ import annotations

import subprocess
from pathlib import Path

from support.cluster.cluster import kubectl_program
from support.documentation.pages import DOCS, blocks_of

from snaploom.loading.load import load
from snaploom.models.allowances import VariableChoice

PAGE = DOCS / "how-to" / "environments.md"


def test_an_overlay_gives_what_an_environment_gives(tmp_path: Path) -> None:
    for block in blocks_of(PAGE):
        if block.title:
            file = tmp_path / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text)
    command = (*kubectl_program(), "kustomize", str(tmp_path))
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    (tmp_path / "kustomized.yaml").write_text(done.stdout)
    chosen = load([tmp_path / "shop"], VariableChoice("prod")).resources
    (patched,) = load([tmp_path / "kustomized.yaml"]).resources
    assert next(each for each in chosen if each.kind == "DataSource") == patched
