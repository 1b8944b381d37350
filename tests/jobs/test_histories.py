"""A source as all its snapshots of a length of time, against DuckDB over their folders."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from support.declared.declarations import document
from support.weaving.loom import Loom, day, day_of, ids

import snaploom
from snaploom.models.common import format_instant
from snaploom.models.report import DataFindingKind
from snaploom.plan.times import Selection
from snaploom.run.runevents import Event, SnapshotStarted
from snaploom.run.weaving.requests import RunOptions
from snaploom.sources.files import records
from snaploom.sources.port import SourceFrame
from snaploom.sources.readers import Sources

pytestmark = pytest.mark.spark

BY_ID = {"groupBy": {"fieldNames": ["id"]}}
DAYS = range(1, 9)
THERE = (1, 2, 5, 6, 7)
"""Days of events: 3, 4 and 8 are missing."""


def events(number: int) -> list[dict[str, Any]]:
    return [{"id": n % 3, "n": number * 10 + n} for n in range(number % 2, 4)]


def with_history(place: Path, length: str = "3d", mode: str = "CONTINUE_WARN", **more: Any) -> Loom:
    """Orders of some days with the events of three days each."""
    loom = Loom(place)
    for number in DAYS:
        loom.write("order", number, ids(0, 1, 7))
    for number in THERE:
        loom.write("event", number, events(number))
    rules = {"history": length, "snapshotMissingMode": mode}
    loom.join("event", **({"transformations": BY_ID} | more), snapshot=rules)
    return loom


def as_text(loom: Loom, kind: str = "csv") -> None:
    """Let the events be text, with declared types."""
    place = loom.place / "sources" / "event"
    for path in place.glob("*/part.parquet"):
        target = path.with_name(f"text.{kind}")
        duckdb.execute(f"COPY (FROM '{path}') TO '{target}' (FORMAT {kind})")
    (source,) = [raw for raw in loom.documents() if raw["metadata"]["name"] == "event"]
    source["spec"]["hdfsLike"].update(
        format=kind,
        sourceUriGlobs=[f"file://{place}/*/*.{kind}"],
        formatOptions={"header": "true"} if kind == "csv" else {},
        schemaFields=[{"name": name, "dataType": "bigint"} for name in ("id", "n")],
    )
    loom.more.append(source)


def by_duckdb(loom: Loom, number: int, length: int = 3) -> list[tuple[int, list[int] | None]]:
    days = [each for each in THERE if number - length < each <= number]
    folder = f"{loom.place}/sources/event"
    files = [f"{folder}/2024-01-{each:02d}/part.parquet" for each in days]
    found = duckdb.execute(
        "SELECT id, list_sort(list(n)) FROM read_parquet($1) GROUP BY id", [files]
    )
    lists = dict(found.fetchall())
    return [(key, lists.get(key)) for key in (0, 1, 7)]


def woven(spark: SparkSession, loom: Loom, number: int) -> list[tuple[int, list[int] | None]]:
    frame = snaploom.read(spark, loom.uri, at=f"2024-01-{number:02d}T00:00:00Z")
    rows = frame.selectExpr("data.id", "sort_array(event.data.n)").orderBy("id").collect()
    return [tuple(row) for row in rows]


def taken(loom: Loom) -> dict[int, list[int]]:
    """Days of events in the manifest, by the day of the snapshot."""
    return {
        day_of(record.time): [day_of(time) for time in source.fingerprints]
        for record in loom.state().snapshots
        for source in record.sources
        if source.source == "event"
    }


WAYS: dict[str, dict[str, Any]] = {
    "one-by-one": {},
    "together": {"run.snapshotsPerJob": 4},
    "kept": {"run.checkpointUri": "CHECKPOINTS"},
    "of-text": {},
    "of-text-in-parallel": {},
}


@pytest.mark.parametrize("way", WAYS)
def test_history_has_the_rows_of_the_folders_of_its_days(spark, tmp_path: Path, way: str) -> None:
    loom = with_history(tmp_path)
    loom.spec.update(
        {key: f"file://{tmp_path}/kept/" if value == "CHECKPOINTS" else value
         for key, value in WAYS[way].items()}
    )  # fmt: skip
    if way.startswith("of-text"):
        as_text(loom)
    options = RunOptions(parallel_snapshots=3 if way.endswith("parallel") else 1)
    report = loom.weave(spark, options=options).report
    assert [day_of(one.time) for one in report.snapshots] == list(DAYS), report.message
    assert taken(loom) == {
        1: [1], 2: [1, 2], 3: [1, 2], 4: [2], 5: [5], 6: [5, 6], 7: [5, 6, 7], 8: [6, 7],
    }  # fmt: skip
    for number in DAYS:
        assert woven(spark, loom, number) == by_duckdb(loom, number)
    warned = {
        day_of(one.time) for one in report.snapshots if any("every day" in w for w in one.warnings)
    }
    assert warned == set(DAYS) - {7}


def test_gap_fails_the_run_and_a_day_that_came_late_is_found_and_restated(spark, tmp_path):
    loom = with_history(tmp_path, mode="ERROR")
    assert "after 2024-01-02T00:00:00Z up to 2024-01-03" in loom.weave(spark).report.message
    loom.others[0]["snapshot"]["snapshotMissingMode"] = "CONTINUE_WARN"
    loom.weave(spark)
    loom.write("event", 3, events(3))
    loom.write("event", 1, events(7))
    (changed,) = [
        one for one in loom.weave(spark).report.data_findings
        if one.kind is DataFindingKind.CHANGED
    ]  # fmt: skip
    assert (changed.field_name, changed.count) == ("event", 5)
    assert changed.samples == tuple(format_instant(day(number)) for number in range(1, 6))
    options = RunOptions(Selection(restated=day(3)))
    loom.weave(spark, options=options)
    assert taken(loom)[3] == [1, 2, 3]
    assert woven(spark, loom, 3)[0][1] == sorted(
        row["n"] for number in (7, 2, 3) for row in events(number) if row["id"] == 0
    )


def test_rows_of_text_are_kept_while_a_later_snapshot_takes_them(spark, tmp_path: Path) -> None:
    loom = with_history(tmp_path)
    as_text(loom)
    kept: list[int] = []

    def emit(event: Event) -> None:
        if isinstance(event, SnapshotStarted):
            kept.append(len(spark.sparkContext._jsc.getPersistentRDDs()))

    before = len(spark.sparkContext._jsc.getPersistentRDDs())
    loom.weave(spark, emit=emit)
    # Snapshots 2 and 3 share a subtree too.
    assert [each - before for each in kept] == [0, 0, 3, 0, 0, 0, 2, 2]
    assert len(spark.sparkContext._jsc.getPersistentRDDs()) == before


def test_day_of_text_that_is_replaced_meanwhile_is_read_again(spark, tmp_path: Path) -> None:
    loom = with_history(tmp_path)
    as_text(loom)

    def emit(event: Event) -> None:
        if isinstance(event, SnapshotStarted) and event.time == day(7):
            path = loom.place / "sources" / "event" / "2024-01-06" / "text.csv"
            path.write_text("id,n\n0,600\n")

    woven_ = loom.weave(spark, emit=emit)
    assert woven_.outcomes[7] == "PUBLISHED", woven_.report.message
    assert woven(spark, loom, 7)[0] == (0, [53, 73, 600])


def test_key_that_repeats_across_days_is_refused_unless_a_rule_takes_one_row(spark, tmp_path):
    loom = with_history(tmp_path / "plain", transformations={})
    for number in (1, 2):
        loom.write("event", number, ids(0, number))
    outcomes = loom.weave(spark, limit=2).outcomes
    assert (outcomes[1], outcomes[2]) == ("PUBLISHED", "rows_multiplied")
    rule = {"parentField": "at", "childField": "since"}
    loom = with_history(tmp_path / "asof", transformations={}, asOf=rule)
    loom.write("order", 2, [{"id": 0, "at": 3}])
    for number in (1, 2):
        loom.write("event", number, [{"id": 0, "since": number, "n": number * 10}])
    loom.write("order", 1, [{"id": 0, "at": 0}])
    outcomes = loom.weave(spark, limit=2).outcomes
    assert (outcomes[1], outcomes[2]) == ("PUBLISHED", "PUBLISHED")
    found = snaploom.read(spark, loom.uri, at=format_instant(day(2)))
    assert found.selectExpr("event.data.n").collect() == [(20,)]


def test_columns_of_days_are_merged_or_refused(spark, tmp_path: Path) -> None:
    loom = with_history(tmp_path)
    loom.write(
        "event", 1, pa.table({"id": pa.array([0], pa.int64()), "n": pa.array([1], pa.int32())})
    )
    loom.write("event", 2, [{"id": 0, "n": 2, "more": "x"}])
    loom.weave(spark, limit=2)
    frame = snaploom.read(spark, loom.uri, at=format_instant(day(2)))
    (row,) = frame.where("data.id = 0").selectExpr("event.data.n", "event.data.more").collect()
    assert sorted(zip(row[0], row[1], strict=True)) == [(1, None), (2, "x")]
    loom.write("event", 3, [{"id": 0, "n": "three"}])
    report = loom.weave(spark, limit=1).report
    assert "types that have nothing in common" in report.message
    assert "2024-01-03/part.parquet" in report.message


def read(spark: SparkSession, loom: Loom, source: str, *days: int) -> SourceFrame:
    sources = Sources(spark, loom.bundle(), day(20))
    return sources.reader(source).read(*map(day, days))


def test_file_of_several_histories_is_checked_once(spark, tmp_path, monkeypatch) -> None:
    loom = with_history(tmp_path)
    as_text(loom, "json")
    checked: list[str] = []
    check = records.check_json

    def seen(session: SparkSession, paths: Sequence[str], *rest: Any) -> None:
        checked.extend(path[-20:-10] for path in paths)
        check(session, paths, *rest)

    monkeypatch.setattr(records, "check_json", seen)
    reader = Sources(spark, loom.bundle(), day(20)).reader("event")
    reader.read(day(1), day(2))
    reader.read(day(2), day(5))
    assert checked == ["2024-01-01", "2024-01-02", "2024-01-05"]


def test_query_is_over_each_snapshot_of_a_history(spark, tmp_path: Path) -> None:
    loom = with_history(tmp_path)
    query = {
        "dataSource": "event",
        "alias": "e",
        "dataQuery": "SELECT id, count(*) AS c FROM e GROUP BY id",
    }
    loom.more.append(document("DataSource", "counted", {"simpleVirtual": query}))
    loom.others[0].update(dataSource="counted")
    found = read(spark, loom, "counted", 1, 2)
    counts = sorted(tuple(row) for row in found.frame.collect())
    assert counts == [(0, 1), (0, 2), (1, 1), (1, 1), (2, 1), (2, 1)]
    assert list(found.snapshots) == [day(1), day(2)]
    assert len(set(found.snapshots.values())) == 2


def test_transformers_change_the_snapshots_of_their_range_only(spark, tmp_path: Path) -> None:
    loom = with_history(tmp_path)
    loom.write("event", 2, [{"id": 0, "number": 21}])
    change = {
        "rename": {"to": "n"},
        "selectors": [{"coordinateIncludeRegex": "^number$"}],
        "snapshotRange": {"from": format_instant(day(2))},
    }
    loom.more.append(document("FieldTransformer", "renamed", {"transformers": [change]}))
    (source,) = [raw for raw in loom.documents() if raw["metadata"]["name"] == "event"]
    source["spec"]["hdfsLike"]["fieldTransformers"] = ["renamed"]
    loom.more.append(source)
    found = read(spark, loom, "event", 1, 2)
    assert found.frame.columns == ["id", "n"]
    assert (0, 21) in [tuple(row) for row in found.frame.collect()]
    assert found.frame.count() == len(events(1)) + 1


def test_rows_of_days_in_a_column_are_read_together(spark, tmp_path: Path) -> None:
    loom = with_history(tmp_path)
    rows = [{"id": 0, "n": n, "at": f"2024-01-0{n}"} for n in (1, 1, 2, 3)]
    loom.write("column", 1, rows)
    source = {
        "format": "parquet",
        "sourceUriGlobs": [f"file://{tmp_path}/sources/column/*/*.parquet"],
        "snapshot": {"fromFieldValue": {"fieldName": "at", "timeFormat": "ISO8601_DATE"}},
    }
    loom.more.append(document("DataSource", "column", {"hdfsLike": source}))
    loom.others[0].update(dataSource="column")
    found = read(spark, loom, "column", 1, 2)
    assert sorted(row.n for row in found.frame.collect()) == [1, 1, 2]
    assert list(found.snapshots) == [day(1), day(2)]
    other = read(spark, loom, "column", 2, 3)
    assert other.fingerprint != found.fingerprint
