"""The text of a comparison: short, whatever the width of the table."""

from __future__ import annotations

from snaploom.plan.differences import (
    ChangedValue,
    ColumnChange,
    ComparedSnapshot,
    DataComparison,
    RowChange,
    RowChanges,
    RowSample,
)
from snaploom.types.merge import CommonFields, OneSided, Retyped

DAY = "2024-05-01T00:00:00Z"


def comparison(rows: RowChanges, fields: CommonFields) -> DataComparison:
    sides = ComparedSnapshot(DAY, 3, 10), ComparedSnapshot(DAY, None, 12)
    return DataComparison("wide", ("id",), *sides, fields, rows)


def test_text_shows_counts_columns_and_samples() -> None:
    value = ChangedValue("data.amount", "5.0", None)
    sample = RowSample(RowChange.CHANGED, (("id", "7"),), (value,), omitted=2)
    rows = RowChanges(3, 1, 1, 8, (ColumnChange("data.amount", 1),), (sample,))
    fields = CommonFields(
        "{}", (OneSided("data.new", "date"),), (), (Retyped("data.x", "string", "long", False),)
    )
    assert str(comparison(rows, fields)).splitlines() == [
        f"wide: {DAY} (manifest 3, 10 rows) -> {DAY} (dry run, 12 rows)",
        "rows by id: 3 added, 1 removed, 1 changed, 8 unchanged",
        "+ column data.new date",
        "~ column data.x string -> long (values are not compared)",
        "~ data.amount: 1 row",
        "~ row id = 7",
        "    data.amount: 5.0 -> NULL",
        "    2 more columns differ",
    ]


def test_many_columns_are_counted_in_text_and_listed_for_programs() -> None:
    columns = tuple(ColumnChange(f"data.c{number}", 1) for number in range(500))
    found = comparison(RowChanges(0, 0, 1, 0, columns), CommonFields("{}"))
    assert len(str(found).splitlines()) < 30
    assert "480 more columns" in str(found)
    assert len(found.document["columns"]) == 500


def test_other_columns_make_a_difference() -> None:
    same = RowChanges(0, 0, 0, 5)
    assert comparison(same, CommonFields("{}")).is_same
    assert not comparison(same, CommonFields("{}", (OneSided("data.new", "date"),))).is_same
