"""Expectations are judged as far as they can be without data."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.declared.declarations import (
    Raw,
    complex_,
    document,
    files,
    key,
    model,
    output,
    parsed,
    relationship,
    simple,
)

from snaploom.loading.load import load
from snaploom.models.allowances import Allowances
from snaploom.models.common import Resource
from snaploom.models.findings import Finding
from snaploom.models.outputdataset import OutputDataset
from snaploom.validate.outputs import folder_of, overlap_findings
from snaploom.validate.validator import validate


def found(expression: str) -> list[Finding]:
    check = {"name": "c", "expression": expression}
    return list(validate(parsed([*model()[:-1], output(checks=[check])])))


@pytest.mark.parametrize(
    "expression",
    [
        "count(*) > 0",
        "DATA.amount >= 0",
        "bool_and(address.data.city IS NOT NULL)",
        "data.is_open",
        "exists(address, each -> each.data.city = 'Berlin')",
        "coalesce(data.is_open, false)",
    ],
)
def test_what_can_be_true_or_false_of_the_output_is_accepted(expression: str) -> None:
    assert found(expression) == []


@pytest.mark.parametrize(
    ("expression", "code", "named"),
    [
        ("amount > 0", "SL188", "amount"),
        ("data.a > addresses.data.b", "SL188", "addresses.data.b"),
        ("count(*)", "SL188", "bigint"),
        ("'yes'", "SL188", "string"),
        ("count(*) >", "SL150", "count(*) >"),
        ("data.a > (SELECT 1)", "SL151", "a subquery"),
        ("reflect('java.lang.System', 'exit') = 'x'", "SL151", "reflect"),
    ],
)
def test_what_cannot_is_one_finding(expression: str, code: str, named: str) -> None:
    (finding,) = found(expression)
    assert (finding.code, finding.path) == (code, "spec.checks[0].expression")
    assert named in finding.found


def test_a_misspelt_field_of_a_source_is_answered_with_the_one_that_is_near() -> None:
    (finding,) = found("max(adress.data.city) IS NOT NULL")
    assert finding.hint == "did you mean `address`?"


def test_clustering_by_what_the_output_does_not_have_is_a_finding() -> None:
    columns = ["data.customer_id", "ADDRESS.data.city", "city"]
    change = {"outputFolder.clusterBy": columns}
    (finding,) = validate(parsed([*model()[:-1], output(**change)]))
    assert (finding.code, finding.path) == ("SL189", "spec.outputFolder.clusterBy[2]")
    assert finding.hint.endswith("data.city")


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
            {**JAR, "outputFolder.table": {"catalog": "lake", "name": "a.b"}}, [], id="of-catalog"
        ),
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
def test_output_that_is_a_table(changes: dict[str, Any], expected: list[Any]) -> None:
    assert faults(*model()[:-1], output(**ICEBERG, **changes)) == expected
    if "outputFolder.table" not in changes:
        delta = output(**{**changes, "outputFolder.dataFormat": "DELTA"})
        needs_no_jar = [one for one in expected if one[0] != "SL149"]
        assert faults(*model()[:-1], delta) == needs_no_jar


@pytest.mark.parametrize("data_format", ["iceberg", "DELTA", "arrow"])
@pytest.mark.parametrize("is_source", [True, False])
def test_what_spark_reads_not_as_files_is_no_target_of_an_index(data_format, is_source):
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
def test_source_that_is_a_table_has_nothing_of_files(data_format, changes, path):
    given = {"format": data_format, "sourceUriGlobs": ["file:///a/b/c/d"], **changes}
    found = [one for one in faults(files("a", **given)) if one[0] == "SL148"]
    assert found == [("SL148", "ERROR", f"spec.hdfsLike.{path}")]


def test_name_of_a_table_is_not_taken_for_its_place() -> None:
    found = faults(files("a", format="iceberg", sourceUriGlobs=["lake.shop.levels"]))
    assert ("SL173", "ERROR", "spec.hdfsLike.sourceUriGlobs[0]") in found


def test_library_of_a_source_is_asked_of_the_output_that_reads_it() -> None:
    root = model()[0]["metadata"]["name"]
    source = files(root, format="delta", sourceUriGlobs=["file:///a"], sourceUriPrefix=None)
    rest = [raw for raw in model() if raw["metadata"]["name"] != root]
    found = [one for one in faults(source, *rest) if one[0] == "SL149"]
    assert found == [("SL149", "WARNING", "spec.run.spark.sparkConf")]


FOLDERS = st.lists(st.sampled_from("ab"), max_size=3).map(
    lambda parts: "/".join(["/o", *parts, ""])
)
AGES = st.sampled_from([None, *(f"2026-01-0{day}T00:00:00Z" for day in (1, 2, 3))])


def placed(name: str, folder: str, created: str | None, table: str = "") -> OutputDataset:
    raw = output(name, **{"outputFolder.folderUri": folder})
    if table:
        place = {"catalog": "lake", "name": table}
        raw["spec"]["outputFolder"] |= {"dataFormat": "ICEBERG", "table": place}
    raw["metadata"] |= {"creationTimestamp": created} if created else {}
    (found,) = parsed([raw])
    assert isinstance(found, OutputDataset)
    return found


def blamed(*outputs: OutputDataset) -> list[str]:
    return [finding.resource for finding in overlap_findings(outputs)]


def test_older_output_keeps_its_folder_inside_a_new_one() -> None:
    old = placed("inner", "/out/wide/", "2026-01-01T00:00:00Z")
    new = placed("outer", "/out/", "2026-01-02T00:00:00Z")
    (finding,) = overlap_findings([new, old])
    assert finding.resource == "OutputDataset/outer"
    assert finding.message == "the folder of OutputDataset/inner lies in this folder"


def test_older_output_keeps_its_table_of_a_catalog() -> None:
    old = placed("z", "/z/", "2026-01-01T00:00:00Z", "sales.orders")
    newer = [placed(name, f"/{name}/", "2026-01-02T00:00:00Z", "sales.orders") for name in "ab"]
    found = overlap_findings([*newer, old, placed("c", "/c/", None, "sales.other")])
    assert [each.resource for each in found] == ["OutputDataset/a", "OutputDataset/b"]
    assert {each.message for each in found} == {"OutputDataset/z publishes to the same table"}


@given(st.lists(st.tuples(FOLDERS, AGES), max_size=7))
def test_blamed_are_all_that_overlap_with_an_earlier_one(drawn):
    outputs = [placed(f"o{number}", *each) for number, each in enumerate(drawn)]

    def rank(each: OutputDataset) -> tuple[str, str, str]:
        return each.metadata.creation_timestamp or "", folder_of(each), each.identity

    def overlaps(one: OutputDataset, other: OutputDataset) -> bool:
        mine, theirs = folder_of(one), folder_of(other)
        return mine.startswith(theirs) or theirs.startswith(mine)

    expected = {
        one.identity
        for one in outputs
        for other in outputs
        if rank(other) < rank(one) and overlaps(one, other)
    }
    assert set(blamed(*outputs)) == expected


EXAMPLES = Path(__file__).parents[4] / "examples"
FAULTY: list[list[Raw]] = [
    [*model(), output("second", **{"outputFolder.folderUri": "/out/wide/inner/"})],
    [*model(), simple("a", "SELECT * FROM x", source="b"), simple("b", "nonsense(", source="a")],
    [output(), files("customer")],
    [*model(), relationship("again", (["customer", "address"], [key("other_id")])),
     output("third", **{"dataModel.dataRelationships": [{"name": "customer-id"},
                                                        {"name": "again"}]})],
    [*model(), relationship("odd", (["customer"], [key("a")]), (["customer"], [key("b")])),
     output("fourth", **{"dataModel.dataRelationships": [{"name": "odd"}]})],
    [files("Customer_1"), complex_("c", "SELECT 1", "c", "Customer_1")],
]  # fmt: skip


def check_each(resources: tuple[Resource, ...]) -> None:
    everything = validate(resources)
    for first, second in pairwise([*resources, resources[0]]):
        about = {first.identity, second.identity}
        expected = tuple(finding for finding in everything if finding.resource in about)
        assert validate(resources, about=about) == expected


@pytest.mark.parametrize("name", ["customer", "flights", "tpch"])
def test_examples(name: str) -> None:
    check_each(load([EXAMPLES / name]).resources)


@pytest.mark.parametrize("raws", FAULTY)
def test_faults_are_reported_for_requested_resources(raws: list[Raw]) -> None:
    resources = tuple(parsed(raws))
    assert validate(resources)
    check_each(resources)


def test_nothing_is_reported_for_no_resource() -> None:
    assert validate(parsed(FAULTY[0]), about=()) == ()
