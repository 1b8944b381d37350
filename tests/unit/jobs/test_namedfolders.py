"""Folders of outputs, found without judging what else is declared."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from support.weaving.loom import OUTPUT, Loom

from snaploom.models.allowances import NO_CHOICE
from snaploom.models.findings import InvalidDeclarations
from snaploom.run.folders import folder_of


@pytest.fixture
def loom(tmp_path: Path) -> Loom:
    return Loom(tmp_path)


def test_folder_is_the_one_that_is_declared(loom) -> None:
    assert folder_of(OUTPUT, [loom.save()], NO_CHOICE) == loom.uri


def test_folder_is_found_whatever_is_wrong_with_the_sources(loom, tmp_path) -> None:
    output = next(raw for raw in loom.documents() if raw["kind"] == "OutputDataset")
    file = tmp_path / "output.yaml"
    file.write_text(yaml.safe_dump(output))
    assert folder_of(OUTPUT, [file], NO_CHOICE) == loom.uri


def test_output_that_is_not_declared_is_named(loom) -> None:
    with pytest.raises(InvalidDeclarations) as raised:
        folder_of("other", [loom.save()], NO_CHOICE)
    assert "other" in str(raised.value)
