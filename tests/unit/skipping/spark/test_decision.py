"""Deciding without Spark: requests written by hand."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from snaploom.skipping.core.definition import IndexDefinition, SkippingDefinition, Target
from snaploom.skipping.core.predicates import And, Or
from snaploom.skipping.core.terms import column_term, expression_term
from snaploom.skipping.formats.parquetfiles import SETTING as KEY_SERVICE
from snaploom.skipping.spark.optimizer.decision import Decider
from snaploom.skipping.spark.optimizer.judgement import usable_part
from snaploom.skipping.spark.optimizer.requests import (
    ENABLED,
    MOST_ROOTS,
    REQUESTED,
    Request,
    SkippingSettings,
)
from snaploom.skipping.spark.optimizer.translation.catalyst import predicate
from snaploom.skipping.spark.relations.fingerprint import (
    SETTINGS,
    columns,
    differences,
    evaluation_differences,
    fingerprint,
    unusable,
)
from snaploom.skipping.spark.relations.janino import cause_of


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
    assert listing.etags is not None
    assert listing.etags.to_pylist() == ["x", None]


@pytest.mark.parametrize("text", ["", "{", "{}", json.dumps(header()) + "\n1\n2,3\nfile:/a"])
def test_request_that_cannot_be_read_keeps_and_is_counted(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
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


def test_invalid_key_service_is_reported_once_and_fails_nothing(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
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


#


def field(name: str, data_type: object, **metadata: object) -> dict[str, object]:
    return {"name": name, "type": data_type, "nullable": True, "metadata": metadata}


def schema_of(**types: object) -> dict[str, object]:
    return {"type": "struct", "fields": [field(name, each) for name, each in types.items()]}


def described(file_format: str = "parquet", **changes: object) -> dict[str, object]:
    given: dict[str, object] = {
        "roots": ["file:/data/t"],
        "location": None,
        "table": None,
        "format": file_format,
        "options": {"path": "/data/t"},
        "dataSchema": schema_of(a="integer", ts="timestamp"),
        "partitionSchema": schema_of(),
        "settings": dict.fromkeys(SETTINGS),
        "evaluation": {"version": "Spark 4.3.0, Java 17"},
        "zone": "UTC",
    }
    return {**given, **changes}


def settings(**values: str) -> Mapping[str, object]:
    return {"settings": {name.replace("__", "."): value for name, value in values.items()}}


def changed(file_format: str, before: Mapping[str, object], after: Mapping[str, object]) -> list:
    found = differences(
        fingerprint(described(file_format, **before)), fingerprint(described(file_format, **after))
    )
    return [each.name for each in found]


ZONE = "spark.sql.session.timeZone"
NOTHING: Mapping[str, object] = {}

SAME = {
    "path": ("parquet", {"options": {"path": "/data/t/p=1"}}),
    "credentials": ("parquet", {"options": {"fs.s3a.secret.key": "x"}}),
    "merge schema_of": ("parquet", {"options": {"mergeSchema": "true"}}),
    "case of a value": ("parquet", {"settings": {"spark.sql.caseSensitive": "FALSE"}}),
    "explicit default": ("csv", {"options": {"Header": "false", "sep": ","}}),
    "zone of parquet": ("parquet", {"settings": {ZONE: "Asia/Tokyo"}, "zone": "Asia/Tokyo"}),
    "column added": ("parquet", {"dataSchema": schema_of(a="integer", ts="timestamp", b="long")}),
    "zone of json without timestamps": (
        "json", {"settings": {ZONE: "Asia/Tokyo"}, "dataSchema": schema_of(a="integer")}
    ),
}  # fmt: skip


@pytest.mark.parametrize(("file_format", "after"), SAME.values(), ids=SAME)
def test_reader_stays_the_same_where_values_cannot_change(
    file_format: str, after: Mapping[str, object]
) -> None:
    before = {"dataSchema": after["dataSchema"]} if file_format == "json" else {}
    assert changed(file_format, before, after) == []


OTHER = {
    "case": ("parquet", settings(spark__sql__caseSensitive="true"), "spark.sql.caseSensitive"),
    "corrupt": ("orc", {"settings": {"spark.sql.files.ignoreCorruptFiles": "true"}},
                "spark.sql.files.ignoreCorruptFiles"),
    "missing": ("avro", {"options": {"ignoreMissingFiles": "true"}}, "ignoremissingfiles"),
    "binary": ("parquet", {"settings": {"spark.sql.parquet.binaryAsString": "true"}},
               "spark.sql.parquet.binaryAsString"),
    "unknown option": ("parquet", {"options": {"something": "1"}}, "something"),
    "described": ("csv", {"options": {"described": "true"}}, "described"),
    "csv zone": ("csv", {"settings": {ZONE: "Asia/Tokyo"}}, ZONE),
    "orc zone": ("orc", {"zone": "Asia/Tokyo"}, "zone"),
    "ansi of json": ("json", {"settings": {"spark.sql.ansi.enabled": "false"}},
                     "spark.sql.ansi.enabled"),
    "schema_of of csv": ("csv", {"dataSchema": schema_of(a="integer", ts="timestamp", b="long")},
                      "schema_of"),
    "order of orc": ("orc", {"dataSchema": schema_of(ts="timestamp", a="integer")}, "schema_of"),
    "avro schema_of": ("avro", {"options": {"avroSchema": "{}"}}, "avroschema"),
}  # fmt: skip


@pytest.mark.parametrize(("file_format", "after", "name"), OTHER.values(), ids=OTHER)
def test_reader_is_another_where_values_could_change(
    file_format: str, after: Mapping[str, object], name: str
) -> None:
    assert name in changed(file_format, NOTHING, after)


def test_zone_counts_for_parquet_with_a_legacy_calendar() -> None:
    legacy = {"spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY"}
    found = changed("parquet", {"settings": legacy}, {"settings": legacy, "zone": "Asia/Tokyo"})
    assert found == [ZONE, "zone"]


def test_zone_counts_where_partition_values_are_timestamps() -> None:
    partitioned = {"partitionSchema": schema_of(p="timestamp")}
    found = changed("parquet", partitioned, {**partitioned, "settings": {ZONE: "Asia/Tokyo"}})
    assert found == [ZONE]


def test_orc_column_added_at_the_end_changes_no_position() -> None:
    longer = {"dataSchema": schema_of(a="integer", ts="timestamp", b="long")}
    assert changed("orc", NOTHING, longer) == changed("orc", longer, NOTHING) == []


@pytest.mark.parametrize(
    "change",
    [
        {"evaluation": {"version": "Spark 4.3.0, Java 17", "spark.sql.ansi.enabled": "false"}},
        {"evaluation": {"version": "Spark 4.3.1, Java 17"}},
        {"zone": "Asia/Tokyo"},
        {"settings": {ZONE: "Asia/Tokyo"}},
        {"isOneEvaluation": False},
    ],
)
def test_evaluation_is_another_where_only_expressions_depend_on_it(change: dict) -> None:
    before, after = fingerprint(described()), fingerprint(described(**change))
    assert evaluation_differences(before, after)
    assert not differences(before, after)


def test_session_zone_that_is_that_of_the_jvm_is_no_difference() -> None:
    named = fingerprint(described(settings={ZONE: "UTC"}))
    assert not evaluation_differences(fingerprint(described()), named)


def test_secrets_in_settings_are_not_written_down() -> None:
    found = fingerprint(described(evaluation={"spark.sql.x.password": "AAEC"}))
    assert "AAEC" not in json.dumps(found.evaluation)


def test_field_ids_make_the_schema_count() -> None:
    by_id = {"settings": {"spark.sql.parquet.fieldId.read.enabled": "true"}}
    ids = [{"type": "struct", "fields": [field("a", "long", **{"parquet.field.id": n})]}
           for n in (1, 2)]  # fmt: skip
    first, second = ({**by_id, "dataSchema": each} for each in ids)
    assert changed("parquet", first, second) == ["schema_of"]


def test_secrets_in_options_are_not_written_down() -> None:
    found = fingerprint(described(options={"parquet.encryption.key.list": "k1:AAECAwQFBgc"}))
    assert "AAECAwQFBgc" not in json.dumps(found.options)
    assert found.options[0][1].startswith("sha256:")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"file_format": "xml"}, "format xml"),
        ({"file_format": "csv", "options": {"MODE": "dropMalformed"}}, "DROPMALFORMED"),
        ({"file_format": "json", "settings": {"spark.sql.json.enablePartialResults": "false"}},
         "depend on each other"),
        ({"file_format": "csv"}, ""),
    ],
)  # fmt: skip
def test_reader_for_which_no_index_can_speak(changes: dict, reason: str) -> None:
    found = unusable(described(**changes))
    assert (reason in found) if reason else found == ""


TYPES = {
    "decimal(10,2)": "decimal(10,2)",
    "short": "smallint",
    "timestamp_ntz": "timestamp_ntz",
}


@pytest.mark.parametrize(("given", "expected"), TYPES.items())
def test_column_types_are_catalog_strings(given: str, expected: str) -> None:
    assert columns(described(dataSchema=schema_of(c=given))).types == {'["c"]': expected}


def test_column_types_reach_into_structs_and_name_hidden_meanings() -> None:
    inner = {"type": "struct", "fields": [field("x", "long"), field(
        "k", "string", __COLLATIONS={"k": "icu.UNICODE"})]}  # fmt: skip
    array = {"type": "array", "elementType": "integer", "containsNull": True}
    fixed = field("f", "string", __CHAR_VARCHAR_TYPE_STRING="char(5)")
    free = field("v", "string", __CHAR_VARCHAR_TYPE_STRING="varchar(5)")
    fields = [field("s", inner), field("r", array), fixed, free]
    found = columns(described(dataSchema={"type": "struct", "fields": fields})).types
    assert found['["s","x"]'] == "bigint"
    assert found['["s","k"]'].startswith("string collate")
    assert found['["r"]'] == "array<int>"
    assert found['["f"]'] == "char(5)"
    assert found['["v"]'] == "string"


def test_partition_column_hides_the_data_column_of_its_name() -> None:
    found = columns(
        described(dataSchema=schema_of(p="string"), partitionSchema=schema_of(P="integer"))
    )
    assert [(term.label, term.data_type) for term in found.terms] == [("P", "int")]


def test_column_of_corrupt_records_is_no_column() -> None:
    found = columns(described("json", dataSchema=schema_of(a="long", _corrupt_record="string")))
    assert [term.label for term in found.terms] == ["a"]
