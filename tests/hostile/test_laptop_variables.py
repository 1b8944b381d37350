"""Somebody else's variables and relative paths: they open nothing that the value would not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from support.declared.declarations import files, model, put

import snaploom as sl
from snaploom.models.datasource import DataSource

DATABASE: dict[str, Any] = {
    "driver": "H2",
    "database": "$(place)",
    "tableReference": "t",
    "snapshot": {"fromReadTime": {}},
}


def codes(folder: Path, resource: dict[str, Any], value: str) -> list[str]:
    """Codes of errors of a resource in a file, with a variable `place`."""
    file = folder / "model.yaml"
    file.write_text(yaml.safe_dump(resource))
    findings = sl.load(file, variables={"place": value}).validate()
    return [finding.code for finding in findings if finding.is_error]


@pytest.mark.parametrize("value", ["/data/shop", "../shop", "s3://lake/shop"])
def test_a_relative_path_or_variable_opens_nothing_more(tmp_path: Path, value: str) -> None:
    assert "SL136" in codes(tmp_path, files("a") | {"spec": {"jdbc": DATABASE}}, value)
    folder = next(each for each in model() if each["kind"] == "OutputDataset")
    put(folder, "spec.outputFolder.folderUri", "$(place)/../../etc/")
    assert "SL173" in codes(tmp_path, folder, value)


@pytest.mark.parametrize(
    "value",
    ["x' OR '1'='1", 'a", "b', "[/etc/*]", "/a\\n  formatOptions: {basePath: /}", "{{a}}"],
)
def test_no_value_adds_a_field_or_ends_a_text(tmp_path: Path, value: str) -> None:
    raw = files("a")
    raw["spec"]["hdfsLike"]["sourceUriGlobs"] = ["/data/$(place)/*"]
    (tmp_path / "model.yaml").write_text(yaml.safe_dump(raw))
    (found,) = sl.load(tmp_path, variables={"place": value}).resources
    raw["spec"]["hdfsLike"]["sourceUriGlobs"] = [f"/data/{value}/*"]
    assert found == DataSource.parse(raw)
