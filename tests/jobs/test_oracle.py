"""Random worlds woven by real runs, and by plain Python that follows the rules' text.

Every row of every snapshot is compared, and the schema, what was left out and why, what was
skipped, and what failed: trees, grouping, windows, missing modes, NULL keys, casts of keys, and
FieldTransformers. `make prove` weaves hundreds of worlds.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from jobs.oracle import (
    DAY_COLUMN,
    EXPRESSIONS,
    PAIR,
    QUERIES,
    SPARK_NAMES,
    Change,
    Child,
    Column,
    Component,
    Outcome,
    Relationship,
    Row,
    Selector,
    Snapshot,
    Source,
    Table,
    World,
    outcomes,
)
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from support.declared.declarations import Raw, document
from support.runner.proofscope import sampled

from snaploom.engine import latecounts
from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos, now, parse_instant
from snaploom.models.kinds import KIND_BY_NAME
from snaploom.models.report import Report
from snaploom.output import layout
from snaploom.output.entries import SnapshotRecord
from snaploom.output.folder import open_folder
from snaploom.plan.bundle import Bundle
from snaploom.plan.bundles import bundle_for
from snaploom.run.job import Job
from snaploom.run.runevents import Interruption
from snaploom.run.weaving.outputrun import weave_output

MOST_CHILDREN = 3
LAST_DAY = 5
TYPES = tuple(SPARK_NAMES)
VALUES: dict[str, Sequence[Any]] = {
    "string": ("1", "0", "01", " 2", "x"),
    "integer": (1, 0, 2),
    "long": (1, 0, 2),
    "double": (1.0, 0.0, 1.5),
}
FIELD_NAMES = ("zebra", "Alpha", "middle")
"""In an order that is not that of the sources, and neither of their letters' codes."""
MODES = ("CONTINUE_IGNORE", "CONTINUE_WARN", "SKIP_IGNORE", "SKIP_WARN", "ERROR")
INCLUDED = ("^old_", "^k", "0a$", "^v$", "a")
EXCLUDED = ("^(row|k)", "^(row|day)$", "^(row|v|day)$")
PATTERNS = (("^old_", ""), ("^old_", ""), (r"^k(\d)(.)$", "$2_$1"), ("^v", "w"))
"""Columns called `row` are selected by no expression: no snapshot is ever without columns."""

Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Dice:
    """Decisions that a seed makes."""

    random: Random

    def one(self, things: Sequence[Thing]) -> Thing:
        return self.random.choice(things)

    def number(self, least: int, most: int) -> int:
        return self.random.randint(least, most)

    def happens(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0


def world_of(seed: int) -> World:
    """A root and one to three children, each of which can be reached unless it is unlucky."""
    dice = Dice(Random(seed))
    count = dice.number(1, MOST_CHILDREN)
    names = [f"s{number}" for number in range(count + 1)]
    relationships = [_drawn_relationship(dice, number, names) for number in range(1, count + 1)]
    names_of_fields = list(FIELD_NAMES[:count])
    children = [
        _drawn_child(dice, names[number], names_of_fields[number - 1], relationships)
        for number in range(1, count + 1)
    ]
    grouped = {child.source for child in children if child.group_by}
    sources = {
        name: _source(dice, name, relationships, name == names[0] or name in grouped)
        for name in names
    }
    return World(
        sources,
        tuple(relationships),
        names[0],
        tuple(children),
        length=dice.number(1, 2),
        preference=dice.one(("NEWEST", "OLDEST")),
        catchup=dice.one(("OLDEST_FIRST", "NEWEST_FIRST")),
        incompatible=dice.one(("WARN", "FAIL")),
        runs=dice.one(((LAST_DAY,), (3, LAST_DAY))),
    )


def _drawn_relationship(dice: Dice, number: int, names: list[str]) -> Relationship:
    """The key by which one source is joined to an earlier one, and sometimes to others."""
    members = {names[number], names[dice.number(0, number - 1)]}
    if dice.happens(6):
        members.add(dice.one(names))
    parts = dice.one((1, 1, 1, 2))
    casts = tuple(dice.one(("long", *TYPES)) for _ in range(parts))
    usual = dice.one(("long", "long", *TYPES))
    keys = {name: _key(dice, number, parts, usual) for name in sorted(members)}
    exclusions = (tuple(sorted(members)[:2]),) if dice.happens(10) else ()
    return Relationship(f"r{number}", keys, casts, dice.number(1, 3), exclusions)


def _key(dice: Dice, number: int, parts: int, usual: str) -> tuple[Component, ...]:
    components = []
    for part in "ab"[:parts]:
        own = dice.one(TYPES) if dice.happens(6) else usual
        fields: tuple[tuple[str, str], ...] = ((f"k{number}{part}", own),)
        query = None
        if dice.happens(5) and QUERIES[own]:
            query = dice.one(QUERIES[own])
        elif dice.happens(12):
            fields, query = (*fields, (f"k{number}{part}x", dice.one(TYPES))), PAIR
        components.append(Component(fields, query))
    return tuple(components)


def _drawn_child(
    dice: Dice, source: str, field_name: str, relationships: list[Relationship]
) -> Child:
    group_by: list[str] = []
    if dice.happens(2):
        number = int(source[1:]) - 1
        keys = dice.one((relationships[number], relationships[number], *relationships)).keys
        components = keys.get(source, relationships[number].keys[source])
        group_by = [name for component in components for name, _ in component.fields]
        if dice.happens(4):
            group_by = [name.upper() for name in reversed(group_by)]
    return Child(
        source,
        field_name,
        tuple(group_by),
        path_mode=dice.one(("ERROR", "CONTINUE_IGNORE", "CONTINUE_WARN")),
        join_mode=dice.one(MODES),
        group_mode=dice.one(MODES),
        snapshot_mode=dice.one(MODES),
        preference=dice.one(("NEWEST", "OLDEST")),
        before=dice.one((LAST_DAY, 2, 1, 0)),
        after=dice.one((0, 1)),
    )


def _source(dice: Dice, name: str, relationships: list[Relationship], may_repeat: bool) -> Source:
    declared = {
        field: kind
        for relationship in relationships
        for component in relationship.keys.get(name, ())
        for field, kind in component.fields
    }
    columns = [Column("row", "long")]
    columns += [Column(field, kind, dice.happens(3)) for field, kind in declared.items()]
    columns.append(Column("v", dice.one(TYPES)))
    days = [day for day in range(1, LAST_DAY + 1) if dice.happens(2)]
    if not days or not dice.happens(3):
        days = [1, *days]
    snapshots = {day: _table(dice, columns, may_repeat) for day in days}
    changes = [_drawn_change(dice, declared) for _ in range(dice.one((0, 1, 1, 2)))]
    return Source(snapshots, tuple(changes), dice.happens(4))


def _table(dice: Dice, usual: list[Column], may_repeat: bool) -> Table:
    columns = list(usual)
    if dice.happens(3):
        at = dice.number(1, len(columns) - 1)
        column = columns[at]
        match dice.one(("old", "absent", "case", "type")):
            case "old":
                columns[at] = replace(column, name=f"old_{column.name}")
            case "case":
                columns[at] = replace(column, name=column.name.upper())
            case "type":
                columns[at] = replace(column, type=dice.one(TYPES))
            case _:
                del columns[at]
    count = dice.one((2, 3, 4, 1, 0))
    values = {column.name: _values(dice, column, count, may_repeat) for column in columns}
    rows: list[Row] = [{name: each[at] for name, each in values.items()} for at in range(count)]
    return Table(tuple(columns), tuple(rows))


def _values(dice: Dice, column: Column, count: int, may_repeat: bool) -> list[Any]:
    if column.name == "row":
        return list(range(count))
    pool = VALUES[column.type]
    if may_repeat or dice.happens(20):
        return [dice.one((*pool, None)) for _ in range(count)]
    return [*pool, None, None][:count]


def _drawn_change(dice: Dice, declared: dict[str, str]) -> Change:
    """Often one that corrects what is unusual in a snapshot, else anything."""
    first = dice.one((None, None, 2, 3))
    end = dice.one((None, None, 4, 5))
    if dice.happens(2) and declared:
        field = dice.one(sorted(declared))
        if dice.happens(2):
            selector = Selector(include=f"^old_{field}$")
            return Change("to", field, (selector,), not dice.happens(3), first, end)
        return Change(
            "cast", declared[field], (Selector(include=f"(?i)^{field}$"),), True, first, end
        )
    kind = dice.one(("pattern", "pattern", "cast", "expression", "drop", "to"))
    value = {
        "pattern": lambda: dice.one(PATTERNS),
        "cast": lambda: dice.one(TYPES),
        "expression": lambda: dice.one(EXPRESSIONS),
        "drop": lambda: None,
        "to": lambda: dice.one(("V", "copy", "k1a")),
    }[kind]()
    is_rename = kind in ("pattern", "to")
    selectors = tuple(_drawn_selector(dice) for _ in range(dice.number(1, 2)))
    return Change(kind, value, selectors, not (is_rename and dice.happens(3)), first, end)


def _drawn_selector(dice: Dice) -> Selector:
    match dice.one(("include", "include", "exclude", "both", "marked")):
        case "include":
            return Selector(dice.one(INCLUDED))
        case "exclude":
            return Selector(None, dice.one(EXCLUDED))
        case "both":
            return Selector(dice.one(INCLUDED), dice.one(EXCLUDED))
    return Selector(is_marked=True)


OUTPUT = "wide"
_ARROW = {"string": pa.string(), "integer": pa.int32(), "long": pa.int64(), "double": pa.float64()}
_FIRST = parse_instant("2024-01-01T00:00:00Z")
_DAY = 86_400 * 10**9


def woven(spark: SparkSession, world: World, place: Path, per_job: int = 1) -> list[Outcome]:
    """What real runs do, one after the other; files lie below a folder that is empty.

    One Spark job weaves up to `per_job` snapshots.
    """
    for name, source in world.sources.items():
        for day, table in source.snapshots.items():
            path = place / name / date_of(day) / "part.parquet"
            path.parent.mkdir(parents=True)
            pq.write_table(_arrow(table), path)
    bundle = bundle_of(world, place, per_job)
    return [_run(spark, bundle, place / "out", day) for day in world.runs]


def date_of(day: int) -> str:
    return f"2024-01-{day:02d}"


def bundle_of(world: World, place: Path, per_job: int = 1) -> Bundle:
    """Everything that the output of a world needs."""
    raws = [
        *(
            document("DataSource", name, {"hdfsLike": _files(name, source, place)})
            for name, source in world.sources.items()
        ),
        *(
            document("FieldTransformer", name, {"transformers": list(map(_change, source.changes))})
            for name, source in world.sources.items()
            if source.changes
        ),
        *map(_relationship, world.relationships),
        document(
            "OutputDataset",
            OUTPUT,
            _output(world, place) | {"run": {"snapshotsPerJob": per_job}},
        ),
    ]
    resources = [KIND_BY_NAME[raw["kind"]].model.parse(raw) for raw in raws]
    return bundle_for("OutputDataset", OUTPUT, resources)


def _run(spark: SparkSession, bundle: Bundle, out: Path, day: int) -> Outcome:
    job = Job(
        now=parse_instant(f"{date_of(day)}T12:00:00Z"),
        clock=now,
        emit=lambda event: None,
        interruption=Interruption(),
    )
    report = weave_output(spark, bundle, job)
    if report.reason == "NoUniqueJoinTree":
        return Outcome(is_refused=True)
    return Outcome(
        is_refused=False,
        published=_published(out, report),
        skipped={_day(one.time): one.reason.value for one in report.skipped},
        failed={_day(one.time): frozenset({one.reason.value}) for one in report.failed},
    )


def _published(out: Path, report: Report) -> dict[int, Snapshot]:
    if not report.snapshots:
        return {}
    state = open_folder(open_store(f"file://{out}/", create=False)).log.read()
    reported = {_day(one.time) for one in report.snapshots}
    return {
        _day(record.time): _snapshot(out, record)
        for record in state.snapshots
        if _day(record.time) in reported
    }


def _snapshot(out: Path, record: SnapshotRecord) -> Snapshot:
    schema = json.loads((out / layout.schema_key(record.schema_hash)).read_text("utf-8"))
    tables = [pq.ParquetFile(out / file.path).read() for file in record.files]
    return Snapshot(
        StructType.fromJson(schema).simpleString(),
        [row for table in tables for row in table.to_pylist()],
        {one.field_name: one.reason.value for one in record.excluded},
    )


def _day(time: str | EpochNanos) -> int:
    nanos = parse_instant(time) if isinstance(time, str) else time
    return (nanos - _FIRST) // _DAY + 1


def _arrow(table: Table) -> pa.Table:
    """Rows with the schema that Spark would have written, since Arrow has no column metadata."""
    fields = [(column.name, _ARROW[column.type]) for column in table.columns]
    spark_schema = {
        "type": "struct",
        "fields": [
            {
                "name": column.name,
                "type": "long" if column.type == "long" else column.type,
                "nullable": True,
                "metadata": {"role": "key"} if column.is_marked else {},
            }
            for column in table.columns
        ],
    }
    metadata = {"org.apache.spark.sql.parquet.row.metadata": json.dumps(spark_schema)}
    return pa.Table.from_pylist(list(table.rows), pa.schema(fields)).replace_schema_metadata(
        metadata
    )


def _files(name: str, source: Source, place: Path) -> Raw:
    root = f"file://{place}/{name}/"
    snapshot = {"fieldName": DAY_COLUMN, "timeFormat": "ISO8601_DATE"}
    return {
        "format": "parquet",
        "sourceUriGlobs": [f"{root}*/*.parquet"],
        "sourceUriPrefix": f"{root}{{{DAY_COLUMN}:STRING}}/",
        "snapshot": {"fromFieldValue": snapshot | {"dropField": not source.keeps_day}},
        "fieldTransformers": [name] if source.changes else [],
    }


def _change(change: Change) -> Raw:
    forms: dict[str, Raw] = {
        "to": {"rename": {"to": change.value}},
        "cast": {"cast": {"dataType": {change.value: {}}}} if change.kind == "cast" else {},
        "expression": {"expression": {"sql": change.value}},
        "drop": {"drop": {}},
    }
    if change.kind == "pattern":
        pattern, replacement = change.value
        forms["pattern"] = {"rename": {"pattern": pattern, "replacement": replacement}}
    days = {"from": change.first, "to": change.end}
    span = {key: f"{date_of(day)}T00:00:00Z" for key, day in days.items() if day is not None}
    return {
        **forms[change.kind],
        "selectors": list(map(_selector, change.selectors)),
        "replaceInputs": change.replaces,
        **({"snapshotRange": span} if span else {}),
    }


def _selector(selector: Selector) -> Raw:
    given: Raw = {
        "coordinateIncludeRegex": selector.include,
        "coordinateExcludeRegex": selector.exclude,
        "metadata": {"role": "key"} if selector.is_marked else None,
    }
    return {key: value for key, value in given.items() if value is not None}


def _relationship(relationship: Relationship) -> Raw:
    representations: list[Any] = []
    for source, components in relationship.keys.items():
        join_key = []
        for component, wanted in zip(components, relationship.casts, strict=True):
            names = [name for name, _ in component.fields]
            part: Raw = {
                "fields": [
                    {"fieldName": name, "dataType": {declared: {}}}
                    for name, declared in component.fields
                ],
                "castDataType": {wanted: {}},
            }
            if component.query is not None:
                part["query"] = component.query.format(*names)
            join_key.append(part)
        representations.append({"dataSources": [source], "joinKey": join_key})
    return document("DataRelationship", relationship.name, {"representations": representations})


def _output(world: World, place: Path) -> Raw:
    start = {"year": 2024, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0, "nano": 0}
    interval = {
        "preference": world.preference,
        "intervalStartDate": start | {"timezone": "UTC"},
        "intervalLength": {"day": world.length},
    }
    return {
        "dataModel": {
            "rootDataSource": {
                "dataSource": world.root,
                "snapshotFilter": {"fromInterval": interval},
            },
            "otherDataSources": list(map(_child, world.children)),
            "dataRelationships": [
                {
                    "name": relationship.name,
                    "antiPriority": relationship.anti_priority,
                    "exclusions": [{"dataSourceSet": list(e)} for e in relationship.exclusions],
                }
                for relationship in world.relationships
            ],
        },
        "outputFolder": {
            "folderUri": f"file://{place}/out/",
            "snapshotFormat": {"hivePartitioned": {}},
            "snapshotCatchupMode": world.catchup,
            "incompatibleSchema": world.incompatible,
        },
    }


def _child(child: Child) -> Raw:
    return {
        "dataSource": child.source,
        "fieldName": child.field_name,
        "pathMissingMode": child.path_mode,
        "joinFieldMissingMode": child.join_mode,
        "transformations": {
            "groupBy": {
                "fieldNames": list(child.group_by),
                "groupByFieldMissingMode": child.group_mode,
            }
        },
        "snapshot": {
            "preference": child.preference,
            "snapshotMissingMode": child.snapshot_mode,
            "timeBefore": {"day": child.before},
            "timeAfter": {"day": child.after},
        },
    }


SEEDS = range(400)
"""Of worlds."""

BELOW_WHAT_IS_LEFT_OUT = 1647
"""A world in which a transformer fails on a source whose parent is not part of the snapshot."""


def canonical(value: Any) -> str:
    """One text a value; arrays in an order of their own."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{canonical(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(sorted(map(canonical, value))) + "]"
    return repr(value)


def agree(got: Outcome, expected: Outcome) -> None:
    assert got.is_refused == expected.is_refused
    assert got.skipped == expected.skipped
    assert got.failed.keys() == expected.failed.keys()
    assert all(got.failed[day] <= expected.failed[day] for day in got.failed)
    assert got.published.keys() == expected.published.keys()
    for day, snapshot in expected.published.items():
        assert got.published[day].schema == snapshot.schema
        assert got.published[day].excluded == snapshot.excluded
        assert Counter(map(canonical, got.published[day].rows)) == Counter(
            map(canonical, snapshot.rows)
        )


def kinds_of(outcome: Outcome) -> set[str]:
    """What there is to see in a run."""
    kinds = {"refused"} if outcome.is_refused else set()
    kinds |= {f"skipped {reason}" for reason in outcome.skipped.values()}
    kinds |= {f"failed {reason}" for reasons in outcome.failed.values() for reason in reasons}
    for snapshot in outcome.published.values():
        kinds |= {f"without {reason}" for reason in snapshot.excluded.values()}
        joined = (value for row in snapshot.rows for name, value in row.items() if name != "data")
        kinds |= {f"joined {type(value).__name__}" for value in joined}
    return kinds


def test_worlds_are_of_every_kind() -> None:
    runs = [outcome for seed in SEEDS for outcome in outcomes(world_of(seed))]
    seen = {kind for outcome in runs for kind in kinds_of(outcome)}
    fields = ("JOIN_FIELD_MISSING", "GROUP_BY_FIELD_MISSING", "SNAPSHOT_MISSING")
    assert seen >= {
        "refused",
        "joined dict",
        "joined list",
        "joined NoneType",
        "without PATH_MISSING",
        "without PARENT_EXCLUDED",
        "failed ROWS_MULTIPLIED",
        "failed HISTORY_INCOMPATIBLE",
        "failed SOURCE_FAILED",
        "skipped EARLIER_FAILURE",
        *(f"without {reason}" for reason in fields),
        *(f"skipped {reason}" for reason in fields),
        *(f"failed {reason}" for reason in fields),
    }


@pytest.mark.spark
@pytest.mark.parametrize("per_job", [1, 12])
@pytest.mark.parametrize("seed", [*sampled(SEEDS, 10), BELOW_WHAT_IS_LEFT_OUT])
def test_runs_do_what_the_oracle_computes(spark, tmp_path, monkeypatch, seed, per_job):
    world = world_of(seed)
    monkeypatch.setattr(latecounts, "counts_are_late", lambda *_: bool(seed % 2))
    got = woven(spark, world, tmp_path, per_job)
    for one, expected in zip(got, outcomes(world), strict=True):
        agree(one, expected)
