"""Missing join and groupBy fields: every mode, on either side; no Spark session is needed."""

import pytest
from pyspark.sql import types as spark
from support.weaving.smallmodels import Loom, key_field, relationship, same_key

from snaploom.engine.schemachecks import SchemaOutcome, check_schemas
from snaploom.models.common import MissingMode

MODES = list(MissingMode)
GOOD = {
    "": spark.StructType().add("id", "integer"),
    "a": spark.StructType().add("ID", "integer").add("b_id", "string"),
    "b": spark.StructType().add("b_id", "string"),
}


def outcome(
    changed: dict[str, spark.StructType], *, join: str = "ERROR", group: str = "ERROR"
) -> SchemaOutcome:
    """root - id - a[grouped by id] - b_id - b, with some schemas changed; modes are a's."""
    a = {
        "dataSource": "a",
        "joinFieldMissingMode": join,
        "transformations": {"groupBy": {"fieldNames": ["id"], "groupByFieldMissingMode": group}},
    }
    loom = Loom("root", [a, "b"], [same_key("id", "root a"), same_key("b_id", "a b", "string")])
    return check_schemas(loom.tree, {**GOOD, **changed}, loom.settings, loom.by_name)


def test_names_are_matched_ignoring_case() -> None:
    assert outcome({}) == SchemaOutcome()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("changed", "family"),
    [
        pytest.param({"": spark.StructType().add("x", "integer")}, "join", id="parent lacks it"),
        pytest.param(
            {"": spark.StructType().add("id", "date")}, "join", id="parent has another type"
        ),
        pytest.param(
            {"a": spark.StructType().add("id", "string")}, "join", id="child's type differs"
        ),
        pytest.param(
            {"a": spark.StructType().add("x", "integer")}, "group", id="groupBy field lacks"
        ),
    ],
)
def test_missing_field_is_handled_by_the_mode_of_the_child(changed, family, mode):
    other = "SKIP_WARN" if mode is MissingMode.ERROR else "ERROR"
    result = outcome(changed, **{"join": other, "group": other, family: mode.value})
    reason = {"join": "JOIN_FIELD_MISSING", "group": "GROUP_BY_FIELD_MISSING"}[family]
    assert bool(result.warnings) == mode.warns
    if mode.continues:
        assert [(e.field_name, e.reason.value) for e in result.excluded] == [
            ("a", reason),
            ("b", "PARENT_EXCLUDED"),
        ]
        assert result.stop is None
    else:
        assert (result.stop.mode, result.stop.reason.value) == (mode, reason)
        assert not result.excluded


def test_error_names_side_field_found_and_expected() -> None:
    stop = outcome({"": spark.StructType().add("x", "long")}).stop
    error = stop.error()
    assert (error.resource, error.path) == ("DataSource/root", "id")
    assert (error.found, error.expected) == ("only x", "int")
    assert "joinFieldMissingMode" in str(error)


def test_another_type_is_not_called_missing() -> None:
    stop = outcome({"": spark.StructType().add("id", "date")}, join="SKIP_WARN").stop
    assert "which has type date" in stop.message
    error = stop.error()
    assert "has another type" in error.message
    assert (error.found, error.expected) == (
        "type date",
        "type int, or one that it holds without loss",
    )
    assert "give root a representation with id of dataType: {date: {}}" in str(error.hint)


def test_first_in_breadth_first_order_decides() -> None:
    lacking = spark.StructType().add("none", "integer")
    loom = Loom(
        "root",
        [
            {"dataSource": "a", "joinFieldMissingMode": "SKIP_IGNORE"},
            {"dataSource": "b", "joinFieldMissingMode": "ERROR"},
        ],
        [same_key("id", "root a b")],
    )
    schemas = {"": GOOD[""], "a": lacking, "b": lacking}
    stop = check_schemas(loom.tree, schemas, loom.settings, loom.by_name).stop
    assert stop.child.field_name == "a"


def test_source_without_snapshot_takes_its_descendants_along() -> None:
    schemas = {name: schema for name, schema in GOOD.items() if name != "a"}
    loom = Loom("root", ["a", "b"], [same_key("id", "root a"), same_key("b_id", "a b", "string")])
    result = check_schemas(loom.tree, schemas, loom.settings, loom.by_name)
    assert [e.field_name for e in result.excluded] == ["b"]


def test_nested_and_dotted_fields_are_found() -> None:
    inner = spark.StructType().add("Id", "integer")
    loom = Loom(
        "root",
        ["a"],
        [relationship("r", {"root": [key_field("s.id")], "a": [key_field("`s.id`")]})],
    )
    schemas = {
        "": spark.StructType().add("S", inner),
        "a": spark.StructType().add("s.ID", "integer"),
    }
    assert check_schemas(loom.tree, schemas, loom.settings, loom.by_name) == SchemaOutcome()
