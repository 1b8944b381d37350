import json
from collections.abc import Mapping

import pytest

from snaploom.skipping.spark.relations.fingerprint import (
    SETTINGS,
    columns,
    differences,
    evaluation_differences,
    fingerprint,
    unusable,
)


def field(name: str, data_type: object, **metadata: object) -> dict[str, object]:
    return {"name": name, "type": data_type, "nullable": True, "metadata": metadata}


def schema(**types: object) -> dict[str, object]:
    return {"type": "struct", "fields": [field(name, each) for name, each in types.items()]}


def header(file_format: str = "parquet", **changes: object) -> dict[str, object]:
    given: dict[str, object] = {
        "roots": ["file:/data/t"],
        "location": None,
        "table": None,
        "format": file_format,
        "options": {"path": "/data/t"},
        "dataSchema": schema(a="integer", ts="timestamp"),
        "partitionSchema": schema(),
        "settings": dict.fromkeys(SETTINGS),
        "evaluation": {"version": "Spark 4.3.0, Java 17"},
        "zone": "UTC",
    }
    return {**given, **changes}


def settings(**values: str) -> Mapping[str, object]:
    return {"settings": {name.replace("__", "."): value for name, value in values.items()}}


def changed(file_format: str, before: Mapping[str, object], after: Mapping[str, object]) -> list:
    found = differences(
        fingerprint(header(file_format, **before)), fingerprint(header(file_format, **after))
    )
    return [each.name for each in found]


ZONE = "spark.sql.session.timeZone"
NOTHING: Mapping[str, object] = {}

SAME = {
    "path": ("parquet", {"options": {"path": "/data/t/p=1"}}),
    "credentials": ("parquet", {"options": {"fs.s3a.secret.key": "x"}}),
    "merge schema": ("parquet", {"options": {"mergeSchema": "true"}}),
    "case of a value": ("parquet", {"settings": {"spark.sql.caseSensitive": "FALSE"}}),
    "explicit default": ("csv", {"options": {"Header": "false", "sep": ","}}),
    "zone of parquet": ("parquet", {"settings": {ZONE: "Asia/Tokyo"}, "zone": "Asia/Tokyo"}),
    "column added": ("parquet", {"dataSchema": schema(a="integer", ts="timestamp", b="long")}),
    "zone of json without timestamps": (
        "json", {"settings": {ZONE: "Asia/Tokyo"}, "dataSchema": schema(a="integer")}
    ),
}  # fmt: skip


@pytest.mark.parametrize(("file_format", "after"), SAME.values(), ids=SAME)
def test_reader_stays_the_same_where_values_cannot_change(file_format, after):
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
    "header": ("csv", {"options": {"header": "true"}}, "header"),
    "csv zone": ("csv", {"settings": {ZONE: "Asia/Tokyo"}}, ZONE),
    "orc zone": ("orc", {"zone": "Asia/Tokyo"}, "zone"),
    "ansi of json": ("json", {"settings": {"spark.sql.ansi.enabled": "false"}},
                     "spark.sql.ansi.enabled"),
    "schema of csv": ("csv", {"dataSchema": schema(a="integer", ts="timestamp", b="long")},
                      "schema"),
    "order of orc": ("orc", {"dataSchema": schema(ts="timestamp", a="integer")}, "schema"),
    "avro schema": ("avro", {"options": {"avroSchema": "{}"}}, "avroschema"),
}  # fmt: skip


@pytest.mark.parametrize(("file_format", "after", "name"), OTHER.values(), ids=OTHER)
def test_reader_is_another_where_values_could_change(file_format, after, name):
    assert name in changed(file_format, NOTHING, after)


def test_zone_counts_for_parquet_with_a_legacy_calendar() -> None:
    legacy = {"spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY"}
    found = changed("parquet", {"settings": legacy}, {"settings": legacy, "zone": "Asia/Tokyo"})
    assert found == [ZONE, "zone"]


def test_zone_counts_where_partition_values_are_timestamps() -> None:
    partitioned = {"partitionSchema": schema(p="timestamp")}
    found = changed("parquet", partitioned, {**partitioned, "settings": {ZONE: "Asia/Tokyo"}})
    assert found == [ZONE]


def test_orc_column_added_at_the_end_changes_no_position() -> None:
    longer = {"dataSchema": schema(a="integer", ts="timestamp", b="long")}
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
    before, after = fingerprint(header()), fingerprint(header(**change))
    assert evaluation_differences(before, after)
    assert not differences(before, after)


def test_session_zone_that_is_that_of_the_jvm_is_no_difference() -> None:
    named = fingerprint(header(settings={ZONE: "UTC"}))
    assert not evaluation_differences(fingerprint(header()), named)


def test_secrets_in_settings_are_not_written_down() -> None:
    found = fingerprint(header(evaluation={"spark.sql.x.password": "AAEC"}))
    assert "AAEC" not in json.dumps(found.evaluation)


def test_field_ids_make_the_schema_count() -> None:
    by_id = {"settings": {"spark.sql.parquet.fieldId.read.enabled": "true"}}
    ids = [{"type": "struct", "fields": [field("a", "long", **{"parquet.field.id": n})]}
           for n in (1, 2)]  # fmt: skip
    first, second = ({**by_id, "dataSchema": each} for each in ids)
    assert changed("parquet", first, second) == ["schema"]


def test_secrets_in_options_are_not_written_down() -> None:
    found = fingerprint(header(options={"parquet.encryption.key.list": "k1:AAECAwQFBgc"}))
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
    found = unusable(header(**changes))
    assert (reason in found) if reason else found == ""


TYPES = {
    "decimal(10,2)": "decimal(10,2)",
    "short": "smallint",
    "timestamp_ntz": "timestamp_ntz",
}


@pytest.mark.parametrize(("given", "expected"), TYPES.items())
def test_column_types_are_catalog_strings(given: str, expected: str) -> None:
    assert columns(header(dataSchema=schema(c=given))).types == {'["c"]': expected}


def test_column_types_reach_into_structs_and_name_hidden_meanings() -> None:
    inner = {"type": "struct", "fields": [field("x", "long"), field(
        "k", "string", __COLLATIONS={"k": "icu.UNICODE"})]}  # fmt: skip
    array = {"type": "array", "elementType": "integer", "containsNull": True}
    fixed = field("f", "string", __CHAR_VARCHAR_TYPE_STRING="char(5)")
    free = field("v", "string", __CHAR_VARCHAR_TYPE_STRING="varchar(5)")
    fields = [field("s", inner), field("r", array), fixed, free]
    found = columns(header(dataSchema={"type": "struct", "fields": fields})).types
    assert found['["s","x"]'] == "bigint"
    assert found['["s","k"]'].startswith("string collate")
    assert found['["r"]'] == "array<int>"
    assert found['["f"]'] == "char(5)"
    assert found['["v"]'] == "string"


def test_partition_column_hides_the_data_column_of_its_name() -> None:
    found = columns(header(dataSchema=schema(p="string"), partitionSchema=schema(P="integer")))
    assert [(term.label, term.data_type) for term in found.terms] == [("P", "int")]


def test_column_of_corrupt_records_is_no_column() -> None:
    found = columns(header("json", dataSchema=schema(a="long", _corrupt_record="string")))
    assert [term.label for term in found.terms] == ["a"]
