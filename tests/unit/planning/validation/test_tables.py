"""Tables of Iceberg and Delta: unsupported settings are refused, missing ones are named."""

from __future__ import annotations

from typing import Any

import pytest
from support.declared.declarations import document, files, model, output, parsed

from snaploom.models.allowances import Allowances
from snaploom.validate.validator import validate

ICEBERG: dict[str, Any] = {"outputFolder.dataFormat": "ICEBERG"}
JAR: dict[str, Any] = {
    "run.spark": {"sparkConf": {"spark.jars.packages": "org.apache.iceberg:iceberg-x:1"}}
}


def faults(*resources: Any) -> list[tuple[str, str, str]]:
    found = validate(parsed(resources), allow=Allowances(spark_conf=("spark.jars.",)))
    return [(f.code, f.severity.value, f.path) for f in found]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, [("SL149", "WARNING", "spec.outputFolder.dataFormat")], id="no-jar"),
        pytest.param(JAR, [], id="jar"),
        pytest.param(
            {**JAR, "outputFolder.incompatibleSchema": "WARN"},
            [("SL184", "ERROR", "spec.outputFolder.incompatibleSchema")],
            id="breaks",
        ),
        pytest.param(
            {**JAR, "outputFolder.registerTable": {"name": "a.b"}},
            [("SL184", "ERROR", "spec.outputFolder.registerTable")],
            id="registered",
        ),
    ],
)
def test_output_that_is_an_iceberg_table(changes: dict[str, Any], expected: list[Any]) -> None:
    assert faults(*model()[:-1], output(**ICEBERG, **changes)) == expected


@pytest.mark.parametrize("data_format", ["iceberg", "DELTA", "arrow"])
@pytest.mark.parametrize("is_source", [True, False])
def test_what_spark_reads_not_as_files_is_no_target_of_an_index(
    data_format: str, is_source: bool
) -> None:
    source = files("levels", format=data_format, sourceUriGlobs=["file:///a/levels"])
    path = {"uri": "file:///a/levels", "format": data_format}
    spec = {
        "target": {"dataSource": "levels"} if is_source else {"path": path},
        "indexes": [{"type": "MIN_MAX", "column": "a"}],
        "store": {"parquet": {"location": "file:///index/"}},
    }
    expected = f"spec.target.{'dataSource' if is_source else 'path.format'}"
    found = faults(source, document("SkippingIndex", "i", spec))
    assert found == [("SL177", "ERROR", expected)]


def test_source_without_files_cannot_be_the_target_of_an_index() -> None:
    query = {"dataSource": "orders", "alias": "o", "dataQuery": "SELECT * FROM o"}
    spec = {
        "target": {"dataSource": "few"},
        "indexes": [{"type": "MIN_MAX", "column": "a"}],
        "store": {"parquet": {"location": "file:///index/"}},
    }
    few = document("DataSource", "few", {"simpleVirtual": query})
    found = faults(files("orders"), few, document("SkippingIndex", "i", spec))
    assert found == [("SL177", "ERROR", "spec.target.dataSource")]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"sourceUriGlobs": ["file:///a", "file:///b"]}, "sourceUriGlobs"),
        ({"sourceUriGlobs": ["file:///a/*"]}, "sourceUriGlobs"),
        ({"sourceUriPrefix": "file:///a/{x:STRING}/"}, "sourceUriPrefix"),
        ({"formatOptions": {"snapshot-id": "1"}}, "formatOptions"),
        ({"schemaFields": [{"name": "a", "dataType": {"long": {}}}]}, "schemaFields"),
    ],
)
@pytest.mark.parametrize("data_format", ["iceberg", "DELTA"])
def test_source_that_is_a_table_has_nothing_of_files(
    data_format: str, changes: dict[str, Any], path: str
) -> None:
    given = {"format": data_format, "sourceUriGlobs": ["file:///a/b/c/d"], **changes}
    found = [one for one in faults(files("a", **given)) if one[0] == "SL148"]
    assert found == [("SL148", "ERROR", f"spec.hdfsLike.{path}")]


def test_library_of_a_source_is_asked_of_the_output_that_reads_it() -> None:
    root = model()[0]["metadata"]["name"]
    source = files(root, format="delta", sourceUriGlobs=["file:///a"], sourceUriPrefix=None)
    rest = [raw for raw in model() if raw["metadata"]["name"] != root]
    found = [one for one in faults(source, *rest) if one[0] == "SL149"]
    assert found == [("SL149", "WARNING", "spec.run.spark.sparkConf")]
