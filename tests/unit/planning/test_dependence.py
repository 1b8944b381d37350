"""Outputs are read by those whose sources name files in their folders, however these are spelt."""

from __future__ import annotations

import pytest
from support.declared.declarations import (
    Raw,
    files,
    found,
    key,
    output,
    parsed,
    relationship,
    simple,
)

from snaploom.models.common import Resource
from snaploom.models.outputdataset import OutputDataset
from snaploom.plan.bundles import bundle_for
from snaploom.validate.outputs import upstream_outputs
from snaploom.validate.validator import validate


def reading(name: str, *globs: str, folder: str = "") -> list[Raw]:
    """An output of one source that reads globs."""
    source = files(f"{name}-files", sourceUriGlobs=list(globs))
    changes = {"dataModel.otherDataSources": [], "dataModel.dataRelationships": []}
    root = {"dataModel.rootDataSource.dataSource": f"{name}-files"}
    return [
        source,
        output(name, **changes, **root, **{"outputFolder.folderUri": folder or f"/out/{name}/"}),
    ]


def upstream(raws: list[Raw], name: str) -> list[str]:
    resources: list[Resource] = parsed(raws)
    outputs = [each for each in resources if isinstance(each, OutputDataset)]
    bundle = bundle_for("OutputDataset", name, resources)
    return [each.name for each in upstream_outputs(bundle, outputs)]


@pytest.mark.parametrize(
    ("glob", "folder", "is_read"),
    [
        pytest.param("/out/up/data/*/*.parquet", "/out/up/", True, id="below"),
        pytest.param("/out/up/*", "/out/up/", True, id="in it"),
        pytest.param("file:///out/up/data/*/*", "/out/up/", True, id="another spelling of local"),
        pytest.param("/out/up/", "file:/out/up/", True, id="the folder itself"),
        pytest.param("/out/up/iceberg", "/out/up/", True, id="its table"),
        pytest.param("s3a://b/up/data/*/*", "s3://b/up/", True, id="another spelling of S3"),
        pytest.param("/out/u*/data/*/*", "/out/up/", True, id="a wildcard in the folder"),
        pytest.param("/*/up/data/*/*", "/out/up/", True, id="a wildcard above the folder"),
        pytest.param("/out/{up,side}/data/*/*", "/out/up/", True, id="one of several"),
        pytest.param("/out/[t-v]p/data/*/*", "/out/up/", True, id="a range of characters"),
        pytest.param("/out/[^a]p/data/*/*", "/out/up/", True, id="all but a character"),
        pytest.param("/out/*.parquet", "/out/up/", False, id="files beside the folder"),
        pytest.param("/out/up2/data/*/*", "/out/up/", False, id="a folder that begins the same"),
        pytest.param("/out/{side,down}/data/*/*", "/out/up/", False, id="none of several"),
        pytest.param("s3://c/up/data/*/*", "s3://b/up/", False, id="another bucket"),
        pytest.param("/out/\\*/data/*/*", "/out/up/", False, id="an escaped star"),
    ],
)
def test_output_is_read_when_files_can_be_in_its_folder(
    glob: str, folder: str, is_read: bool
) -> None:
    raws = [*reading("up", "/raw/*/*", folder=folder), *reading("down", "/raw/*", glob)]
    assert upstream(raws, "down") == (["up"] if is_read else [])
    assert upstream(raws, "up") == []


def test_outputs_behind_virtual_sources_are_read() -> None:
    changes = {"dataModel.otherDataSources": [], "dataModel.dataRelationships": []}
    root = {"dataModel.rootDataSource.dataSource": "part"}
    raws = [
        *reading("up", "/raw/*"),
        files("whole", sourceUriGlobs=["/out/up/data/*/*"]),
        simple("part", "SELECT a FROM c", "whole"),
        output("down", **changes, **root),
    ]
    assert upstream(raws, "down") == ["up"]


def test_sources_that_are_joined_count_as_the_root_does() -> None:
    raws = [
        *reading("up", "/raw/*"),
        files("customer"),
        files("address", sourceUriGlobs=["/out/up/data/*/*"]),
        relationship("customer-id", (["customer", "address"], [key("customer_id")])),
        output("down"),
    ]
    assert upstream(raws, "down") == ["up"]


def test_every_output_of_a_cycle_gets_the_cycle() -> None:
    raws = [
        *reading("a", "/out/c/data/*/*"),
        *reading("b", "/out/a/data/*/*"),
        *reading("c", "/out/b/data/*/*", "/raw/*"),
        *reading("d", "/out/c/data/*/*"),
    ]
    circles = {f.resource: f.found for f in validate(parsed(raws)) if f.code == "SL181"}
    assert circles == {
        "OutputDataset/a": "OutputDataset/a -> OutputDataset/c -> OutputDataset/b "
        "-> OutputDataset/a",
        "OutputDataset/b": "OutputDataset/b -> OutputDataset/a -> OutputDataset/c "
        "-> OutputDataset/b",
        "OutputDataset/c": "OutputDataset/c -> OutputDataset/b -> OutputDataset/a "
        "-> OutputDataset/c",
    }


def test_output_that_reads_itself_is_refused() -> None:
    raws = reading("own", "/out/own/data/*/*")
    assert ("SL181", "OutputDataset/own", "spec.dataModel") in found(raws)


def test_cycle_is_reported_for_requested_outputs_only() -> None:
    raws = [*reading("a", "/out/b/data/*/*"), *reading("b", "/out/a/data/*/*")]
    about = validate(parsed(raws), about={"OutputDataset/b"})
    assert [f.resource for f in about if f.code == "SL181"] == ["OutputDataset/b"]


def test_choices_beyond_the_limit_count_as_read() -> None:
    many = "{" + ",".join(f"n{number}" for number in range(40)) + "}"
    raws = [*reading("up", "/raw/*"), *reading("down", f"/out/{many}/{many}/{many}/*")]
    assert upstream(raws, "down") == ["up"]
