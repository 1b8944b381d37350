"""Deciding without Spark: requests written by hand."""

import json
from dataclasses import replace

import pytest

from snaploom.skipping.core.definition import (
    IndexDefinition,
    SkippingDefinition,
    Target,
    column_term,
    expression_term,
)
from snaploom.skipping.core.predicates import And, Or
from snaploom.skipping.formats.parquetfiles import SETTING as KEY_SERVICE
from snaploom.skipping.spark.optimizer.decision import Decider, usable_part
from snaploom.skipping.spark.optimizer.requests import (
    ENABLED,
    MOST_ROOTS,
    REQUESTED,
    Request,
    SkippingSettings,
)
from snaploom.skipping.spark.optimizer.translation.catalyst import predicate
from snaploom.skipping.spark.relations.fingerprint import SETTINGS, columns, fingerprint
from snaploom.skipping.spark.relations.hadoop import cause_of


def schema(**types: str) -> dict[str, object]:
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in types.items()]
    return {"type": "struct", "fields": fields}


def header(**changes: object) -> dict[str, object]:
    return {
        "roots": ["file:/data/t"],
        "location": None,
        "table": None,
        "format": "parquet",
        "options": {},
        "dataSchema": schema(a="integer"),
        "partitionSchema": schema(p="integer"),
        "settings": dict.fromkeys(SETTINGS),
        "evaluation": {"version": "Spark 4.3.0, Java 17"},
        "zone": "UTC",
        **changes,
    }


A, P = column_term(("a",), "int"), column_term(("p",), "int")
NEXT = expression_term(["Add", {}, ["col", "a", "int"], ["lit", 1, "int"]], "int", "a + 1")
DEFINITION = SkippingDefinition(
    target=Target("file:/data/t"),
    fingerprint=fingerprint(header()),
    indexes=tuple(
        IndexDefinition(f"i{n}", "MIN_MAX", (term,)) for n, term in enumerate((A, P, NEXT), 1)
    ),
    partition_columns=(("p", "int"),),
)


def used(definition: SkippingDefinition = DEFINITION, **changes: object) -> list[str]:
    part, _ = usable_part(definition, Request(header(**changes)))
    return [index.term.label for index in part.indexes]


def test_everything_is_used_by_the_same_reader() -> None:
    assert used() == ["a", "p", "a + 1"]


def test_partition_column_that_is_no_longer_one_is_another_column() -> None:
    assert used(partitionSchema=schema(), dataSchema=schema(a="integer", p="integer")) == [
        "a",
        "a + 1",
    ]
    assert used(replace(DEFINITION, partition_columns=())) == ["a", "a + 1"]


def test_partition_values_of_a_catalog_are_its_own() -> None:
    assert used(table="db.t", location="file:/data/t") == ["a", "a + 1"]


def test_setting_of_expressions_does_not_affect_columns() -> None:
    assert used(
        evaluation={"version": "Spark 4.3.0, Java 17", "spark.sql.ansi.enabled": "false"}
    ) == ["a", "p"]


def test_setting_of_the_reader_leaves_nothing() -> None:
    part, reasons = usable_part(
        DEFINITION, Request(header(settings={"spark.sql.caseSensitive": "true"}))
    )
    assert part.indexes == ()
    assert reasons == (
        "the reader has changed: spark.sql.caseSensitive is true, indexed with not set",
    )


TARGETS = {
    "root": ({}, ("file:/data/t",)),
    "location first": (
        {"location": "file:/data/t", "roots": ["file:/data/t/p=1", "file:/x"]},
        ("file:/data/t", "file:/x"),
    ),
    "slash": ({"roots": ["s3a://b/"]}, ("s3a://b",)),
    "many": (
        {"roots": [f"file:/data/t/p={n}" for n in range(MOST_ROOTS + 1)]},
        ("file:/data/t",),
    ),
    "none": ({"roots": []}, ()),
}


@pytest.mark.parametrize(("changes", "expected"), TARGETS.values(), ids=TARGETS)
def test_places_where_an_index_may_be(changes: dict, expected: tuple[str, ...]) -> None:
    assert Request(header(**changes)).targets == expected


def test_listing_is_parsed_with_its_etags() -> None:
    request = Request.parse(json.dumps(header(etags=["x", None])) + "\n1,2\n3,4\nfile:/a\nfile:/b")
    listing = request.listing()
    assert listing.paths.to_pylist() == ["file:/a", "file:/b"]
    assert (listing.lengths.tolist(), listing.modified.tolist()) == ([1, 2], [3, 4])
    assert listing.etags.to_pylist() == ["x", None]


@pytest.mark.parametrize("text", ["", "{", "{}", json.dumps(header()) + "\n1\n2,3\nfile:/a"])
def test_request_that_cannot_be_read_keeps_and_is_counted(text, caplog):
    decider = Decider()
    assert [decider(text), decider(text)] == [None, None]
    assert decider.counting.read().errors == 2
    assert len(caplog.records) == 1


def test_nothing_is_concerned_without_a_location() -> None:
    assert not Decider().concerns(json.dumps(header()))


def test_settings_name_what_disables_skipping() -> None:
    found = SkippingSettings.of({ENABLED: " False "})
    assert (found.is_enabled, found.switched_off_by) == (False, ENABLED)
    assert SkippingSettings.of(dict.fromkeys([ENABLED])).is_enabled


@pytest.mark.parametrize("depth", [50, 5_000, 100_000])
def test_condition_of_any_depth_keeps_what_it_must(depth: int) -> None:
    text = '["IsNull",{"type":"int"},["col","a","int"]]'
    filters = '["Not",{},' * depth + text + "]" * depth
    asked = json.dumps(header(mode="list")).removesuffix("}") + f', "filters": [{filters}]}}'
    assert Decider()(f"{asked}\n1\n2\nfile:/a") is None


def test_long_condition_is_understood_whole() -> None:
    equals = [["EqualTo", {}, ["col", "a", "int"], ["lit", n, "int"]] for n in range(2_000)]
    filters = ["Or", {}, *equals]
    found = predicate([filters], columns(header()))
    assert isinstance(found, And)
    assert isinstance(found.parts[0], Or)
    assert len(found.parts[0].parts) == 2_000


def test_invalid_key_service_is_reported_once_and_fails_nothing(caplog, tmp_path):
    decider = Decider()
    decider.add_bases([str(tmp_path)])
    asked = json.dumps(header(settings={**dict.fromkeys(REQUESTED), KEY_SERVICE: "safe+https://x"}))
    assert [decider.concerns(asked), decider.concerns(asked)] == [False, False]
    assert decider.counting.read().errors == 0
    (record,) = caplog.records
    assert "names a key management service that is not registered here" in record.getMessage()


WORKER = """
  An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "worker.py", line 598, in read_single_udf
    f, return_type = read_command(pickleSer, udf)
                     ^^^^^^^^^^^^
ModuleNotFoundError: No module named 'snaploom'
"""


def test_an_error_in_a_worker_is_what_the_worker_raised() -> None:
    raised = "a Python worker of Spark raised ModuleNotFoundError: No module named 'snaploom'"
    assert cause_of(RuntimeError(WORKER)).startswith(f"{raised}; set PYSPARK_PYTHON to")


def test_other_errors_are_their_first_line() -> None:
    assert cause_of(RuntimeError("\n  no such file\n\tat a.B")) == "no such file"
    assert cause_of(RuntimeError("")) == "RuntimeError"
