"""Variables and relative paths are replaced where models allow it, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.declared.declarations import files, output, spoilt

from snaploom.loading.composer import node_of
from snaploom.loading.documents import Read, Surroundings, read_object, read_resource
from snaploom.loading.load import load
from snaploom.models.datasource import DataSource, HdfsLike, Jdbc
from snaploom.models.outputdataset import OutputDataset

GLOB = "spec.hdfsLike.sourceUriGlobs[0]"
FOLDER = "/home/me/models"


def read(raw: dict[str, Any], folder: str = "", **values: str) -> Read:
    return read_resource(node_of(raw), Surroundings(values, folder=folder))


def file_source(**fields: Any) -> dict[str, Any]:
    raw = files("orders")
    raw["spec"]["hdfsLike"].update(fields)
    return raw


def hdfs(found: Read) -> HdfsLike:
    assert isinstance(found.resource, DataSource), found.findings
    assert found.resource.spec.hdfs_like is not None
    return found.resource.spec.hdfs_like


def test_a_variable_is_replaced_in_names_uris_and_times() -> None:
    raw = spoilt(output(), "metadata.name", "$(team)-wide")
    raw["spec"]["outputFolder"]["folderUri"] = "$(lake)/wide/"
    interval = raw["spec"]["dataModel"]["rootDataSource"]["snapshotFilter"]["fromInterval"]
    interval["intervalStartDate"] = "$(first)"
    found = read(raw, team="sales", lake="s3://lake", first="2024-05-01")
    assert found.findings == ()
    assert isinstance(found.resource, OutputDataset)
    assert found.resource.name == "sales-wide"
    assert found.resource.spec.output_folder.folder_uri == "s3://lake/wide/"
    assert found.used == {"team", "lake", "first"}


@given(st.text(st.characters(codec="utf-8", exclude_characters="$\x00"), max_size=40))
def test_any_value_stays_in_its_field(value: str) -> None:
    found = read(file_source(sourceUriGlobs=["s3://lake/$(day)/*"]), day=value)
    assert hdfs(found).source_uri_globs == (f"s3://lake/{value}/*",)


def test_a_value_is_not_looked_at_again() -> None:
    found = read(file_source(sourceUriGlobs=["/a/$(one)/*"]), one="$(two)", two="x")
    (finding,) = found.findings
    assert (finding.code, finding.path) == ("SL113", GLOB)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("/a/$(dya)/*", "did you mean `day`?"),
        ("/a/$(day/*", "close it: `$(name)`"),
        ("/a/$()/*", "by `--set name=VALUE`"),
    ],
)
def test_what_has_no_value_is_one_finding(text: str, hint: str) -> None:
    (finding,) = read(file_source(sourceUriGlobs=[text]), day="x").findings
    assert (finding.code, finding.path) == ("SL121", GLOB)
    assert finding.hint.endswith(hint)


VIRTUAL = {
    "apiVersion": "snaploom.io/v1alpha1",
    "kind": "DataSource",
    "metadata": {"name": "open"},
    "spec": {
        "simpleVirtual": {
            "dataSource": "orders", "alias": "o", "dataQuery": "SELECT '$(day)' AS day FROM o",
        }
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (VIRTUAL, "spec.simpleVirtual.dataQuery"),
        (file_source(format="$(day)"), "spec.hdfsLike.format"),
        (file_source(formatOptions={"header": "$(day)"}), "spec.hdfsLike.formatOptions.header"),
        (spoilt(output(), "spec.checks", [{"name": "c", "expression": "a = '$(day)'"}]),
         "spec.checks[0].expression"),
        (spoilt(files("a"), "metadata.labels", {"day": "$(day)"}), "metadata.labels.day"),
    ],
)  # fmt: skip
def test_a_variable_elsewhere_is_one_finding(raw: dict[str, Any], path: str) -> None:
    found = read(raw, day="2024-05-01")
    (finding,) = found.findings
    assert (finding.code, finding.path, finding.found) == ("SL122", path, "$(day)")
    assert found.resource is None


def test_text_that_only_looks_like_a_variable_stays() -> None:
    assert read(VIRTUAL, other="x").findings == ()


def test_a_password_is_no_place_for_a_variable_and_is_not_shown() -> None:
    jdbc = {
        "driver": "POSTGRESQL", "host": "$(host)", "database": "shop", "tableReference": "t",
        "credentials": {"fromPlaintext": {"user": "u", "password": "s3cret-$(host)"}},
        "snapshot": {"fromReadTime": {}},
    }  # fmt: skip
    raw = spoilt(files("a"), "spec", {"jdbc": jdbc})
    (finding,) = read(raw, host="db").findings
    assert finding.code == "SL122"
    assert "s3cret" not in finding.dump_json()


@pytest.mark.parametrize(
    ("text", "absolute"),
    [
        ("data/*.csv", f"{FOLDER}/data/*.csv"),
        ("./data/{a,b}/*", f"{FOLDER}/data/{{a,b}}/*"),
        ("../data/*", "/home/me/data/*"),
        ("../../x/../y/*", "/home/x/../y/*"),
        ("/data/*", "/data/*"),
        ("s3://lake/*", "s3://lake/*"),
        ("file:/data/*", "file:/data/*"),
    ],
)
def test_a_relative_path_counts_from_its_file(text: str, absolute: str) -> None:
    assert hdfs(read(file_source(sourceUriGlobs=[text]), FOLDER)).source_uri_globs == (absolute,)


def test_special_letters_of_the_folder_mean_themselves() -> None:
    raw = file_source(sourceUriGlobs=["d/*"], sourceUriPrefix="d/{day:STRING}/")
    found = hdfs(read(raw, "/home/{me}[1]"))
    assert found.source_uri_globs == (r"/home/\{me\}\[1\]/d/*",)
    assert found.source_uri_prefix == "/home/{{me}}[1]/d/{day:STRING}/"


def test_only_a_database_that_is_a_file_has_a_path() -> None:
    def database(driver: str) -> str | None:
        jdbc = {"driver": driver, "database": "shop", "tableReference": "t",
                "snapshot": {"fromReadTime": {}}}  # fmt: skip
        found = read(spoilt(files("a"), "spec", {"jdbc": jdbc}), FOLDER).resource
        assert isinstance(found, DataSource)
        assert isinstance(found.spec.variant, Jdbc)
        return found.spec.variant.database

    assert database("SQLITE") == f"{FOLDER}/shop"
    assert database("POSTGRESQL") == "shop"


def test_an_object_of_a_cluster_keeps_its_relative_path_and_no_variable() -> None:
    assert hdfs(read_object(file_source(sourceUriGlobs=["data/*"]))).source_uri_globs == ("data/*",)
    (finding,) = read_object(file_source(sourceUriGlobs=["s3://$(lake)/*"])).findings
    assert (finding.code, finding.path) == ("SL121", GLOB)
    assert "snaploom render" in finding.hint


def test_a_finding_has_the_line_of_the_variable(tmp_path: Path) -> None:
    text = yaml.safe_dump(file_source(sourceUriGlobs=["/a/$(day)/*"]))
    (tmp_path / "a.yaml").write_text(text)
    (finding,) = load([tmp_path]).findings
    assert text.splitlines()[finding.line - 1].strip() == "- /a/$(day)/*"
