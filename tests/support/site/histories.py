"""Output folders with a long and eventful history, written without Spark: entries, and no data."""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from snaploom.files.stores import open_store
from snaploom.models.common import CheckMode, EpochNanos, format_instant
from snaploom.models.report import (
    CheckResult,
    Exclusion,
    ExclusionReason,
    JoinMeasure,
    SourceSnapshot,
)
from snaploom.output.checkpoints import CHECKPOINT_EVERY, write_checkpoint
from snaploom.output.entries import (
    Entry,
    FileRecord,
    FolderIdentity,
    FolderSettings,
    ModelNode,
    Publish,
    Replace,
    SnapshotRecord,
    Tombstone,
    format_entry,
)
from snaploom.output.folder import Run, prepare_folder
from snaploom.output.layout import content_hash, manifest_key, new_run_id
from snaploom.output.manifest import store_schema
from snaploom.output.state import fold, tombstone_of

START = EpochNanos(1_704_067_200_000_000_000)
"""2024-01-01T00:00:00Z"""
DAY = 86_400 * 10**9
SETTINGS = FolderSettings(
    data_format="PARQUET",
    data_compression="ZSTD",
    partition_field_name="snapshot_epoch",
    timestamp_format="UNIX_MILLISECONDS",
    output_timezone="UTC",
)
CHILDREN = ("customer", "product", "region")


@dataclass(frozen=True)
class Events:
    """What happens in a history, by number of the interval."""

    gaps: tuple[int, ...] = (20, 21, 55)
    restated: tuple[int, ...] = (30,)
    deleted: tuple[int, ...] = (0, 1)
    doubtful: tuple[int, ...] = (40,)
    without_region: tuple[int, ...] = tuple(range(10))
    """Intervals before the region joined."""
    step: int = DAY
    """Nanoseconds of an interval."""
    reason: str = "late orders were added"
    """Why a snapshot was restated."""
    column: str = "amount"
    """Name of a column of the root."""


def write_history(folder: Path, length: int, events: Events = Events()) -> None:
    """A folder of an output `orders-wide` with as many intervals as wanted."""
    store = open_store(str(folder), create=True)
    run = Run(new_run_id(START), "0.1.0", lambda: START, lambda point: None)
    prepared = prepare_folder(
        store, SETTINGS, FolderIdentity(output="orders-wide", root="orders"), run
    )
    schemas = {
        wide: store_schema(store, json.dumps(_schema(wide, events.column)))
        for wide in (False, True)
    }
    state, entries = prepared.log.read(), []
    for entry in _entries(run, length, events, schemas, state.next_seq):
        store.put(manifest_key(entry.seq), format_entry(entry))
        entries.append(entry)
    last = len(entries) - len(entries) % CHECKPOINT_EVERY
    if last:
        write_checkpoint(store, fold(state, entries[: last - 1]))


def _entries(
    run: Run, length: int, events: Events, schemas: dict[bool, str], first: int
) -> Iterator[Entry]:
    chance = random.Random(7)  # the same history in every run
    seq, live = first, {}
    for number in range(length):
        if number in events.gaps:
            continue
        record = _record(run, number, seq, events, schemas, chance)
        live[number] = record
        yield Publish(
            seq=seq, run_id=run.run_id, written_at=record.created_at, tool_version="0.1.0",
            snapshot=record, model=_model(number not in events.without_region),
        )  # fmt: skip
        seq += 1
    for number in events.restated:
        if number not in live:
            continue
        old, at = live[number], EpochNanos(START + length * events.step)
        new = old.model_copy(
            update={
                "seq": seq, "created_at": at, "replaces": old.seq, "reason": events.reason,
                "rows": old.rows + 12,
                "files": tuple(
                    file.model_copy(update={"path": file.path.replace("0123abcd", "89abcdef")})
                    for file in old.files
                ),
            }
        )  # fmt: skip
        live[number] = new
        yield Replace(
            seq=seq, run_id=run.run_id, written_at=at, tool_version="0.1.0", snapshot=new,
            replaced=tombstone_of(old, seq=seq, rule="REPLACED", deleted_at=at),
            model=_model(number not in events.without_region),
        )  # fmt: skip
        seq += 1
    ended = [live[number] for number in events.deleted if number in live]
    if ended:
        at = EpochNanos(START + length * events.step)
        yield Tombstone(
            seq=seq, run_id=run.run_id, written_at=at, tool_version="0.1.0",
            snapshots=tuple(
                tombstone_of(record, seq=seq, rule="maxOldSnapshots", deleted_at=at)
                for record in ended
            ),
        )  # fmt: skip


def _record(
    run: Run,
    number: int,
    seq: int,
    events: Events,
    schemas: dict[bool, str],
    chance: random.Random,
) -> SnapshotRecord:
    time = EpochNanos(START + number * events.step)
    wide = number not in events.without_region
    children = CHILDREN if wide else CHILDREN[:-1]
    rows = 10_000 + 35 * number + chance.randrange(900)
    partition = f"snapshot_epoch={time // 10**6}"
    is_doubtful = number in events.doubtful
    excluded = (
        Exclusion(field_name="region", reason=ExclusionReason.SNAPSHOT_MISSING),
    ) if is_doubtful and wide else ()  # fmt: skip
    joined = tuple(name for name in children if not (is_doubtful and name == "region"))
    return SnapshotRecord(
        time=time,
        partition=partition,
        seq=seq,
        run_id=run.run_id,
        created_at=EpochNanos(time + events.step + 3_600 * 10**9),
        plan_hash=content_hash(b"plan"),
        schema_hash=schemas[wide],
        model_hash=content_hash(b"wide" if wide else b"narrow"),
        rows=rows,
        sources=tuple(
            SourceSnapshot(
                field_name=name,
                source=f"{name}s" if name else "orders",
                time=format_instant(EpochNanos(time - _lag(name, number) * events.step)),
            )
            for name in ("", *joined)
        ),
        excluded=excluded,
        joins=tuple(
            JoinMeasure(
                child=name,
                in_=rows,
                out=rows,
                matched=int(rows * (0.97 - 0.1 * place - 0.02 * chance.random())),
                null_keys=int(rows * 0.01 * place),
            )
            for place, name in enumerate(joined)
        ),
        checks=(
            CheckResult(
                name="amounts", mode=CheckMode.WARN, holds=not is_doubtful,
                measured="3 rows below zero" if is_doubtful else "",
            ),
        ),
        warnings=("region matched nothing",) if is_doubtful else (),
        files=tuple(
            FileRecord(
                path=f"data/{partition}/{run.run_id}-0123abcd-{n:05d}.zstd.parquet",
                bytes=rows * 61 + n,
            )
            for n in range(2)
        ),
        tool_version="0.1.0",
        spark_version="4.3.0",
    )  # fmt: skip


def _lag(name: str, number: int) -> int:
    """Intervals by which a source's snapshot is older: products come once a week."""
    return number % 7 if name == "product" else 0


def _model(wide: bool) -> tuple[ModelNode, ...]:
    nodes = (
        ModelNode(field_name="", parent="", source="orders"),
        ModelNode(field_name="customer", parent="", source="customers", relationship="customer-id"),
        ModelNode(field_name="product", parent="", source="products", relationship="product-id"),
        ModelNode(
            field_name="region", parent="customer", source="regions", relationship="country",
            group_by=("country",),
        ),
    )  # fmt: skip
    return nodes if wide else nodes[:-1]


def _field(name: str, type_: object) -> dict[str, object]:
    return {"name": name, "type": type_, "nullable": True, "metadata": {}}


def _struct(*fields: dict[str, object]) -> dict[str, object]:
    return {"type": "struct", "fields": list(fields)}


def _schema(wide: bool, column: str) -> dict[str, object]:
    region = _field("region", {
        "type": "array", "containsNull": False,
        "elementType": _struct(_field("data", _struct(
            _field("country", "string"), _field("name", "string")))),
    })  # fmt: skip
    data = [_field("customer_id", "long"), _field("name", "string"), _field("country", "string")]
    customer = [_field("data", _struct(*data))]
    amount = "decimal(12,2)" if wide else "decimal(10,2)"
    return _struct(
        _field("data", _struct(
            _field("order_id", "long"), _field("customer_id", "long"),
            _field("product_id", "long"), _field(column, amount))),
        _field("customer", _struct(*customer, *([region] if wide else []))),
        _field("product", _struct(_field("data", _struct(
            _field("product_id", "long"), _field("title", "string"))))),
    )  # fmt: skip


def declarations(folder: Path, output_folder: Path, **changed: object) -> Path:
    """Declarations of the output, in a file.

    Args:
        folder: where the file goes.
        output_folder: of the output.
        changed: fields of the output's spec that are otherwise.
    """
    source = {
        "format": "parquet",
        "sourceUriGlobs": [f"file://{folder}/NAME/*.parquet"],
        "sourceUriPrefix": f"file://{folder}/NAME/{{day:STRING}}.parquet",
        "snapshot": {"fromFieldValue": {"fieldName": "day", "timeFormat": "ISO8601_DATE"}},
    }
    names = ("orders", "customers", "products", "regions")
    keys = {
        "customer-id": (("orders", "customers"), "customer_id", "long"),
        "product-id": (("orders", "products"), "product_id", "long"),
        "country": (("customers", "regions"), "country", "string"),
    }
    start = {
        "year": 2024, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0, "nano": 0,
        "timezone": "UTC",
    }  # fmt: skip
    interval = {"intervalStartDate": start, "intervalLength": {"day": 1}}
    output = {
        "dataModel": {
            "rootDataSource": {
                "dataSource": "orders",
                "snapshotFilter": {"fromInterval": interval},
            },
            "otherDataSources": [
                {"dataSource": "customers", "fieldName": "customer"},
                {"dataSource": "products", "fieldName": "product",
                 "snapshot": {"timeBefore": {"day": 7}}},
                {"dataSource": "regions", "fieldName": "region",
                 "transformations": {"groupBy": {"fieldNames": ["country"]}}},
            ],
            "dataRelationships": [{"name": name} for name in keys],
        },
        "outputFolder": {
            "folderUri": f"file://{output_folder}/",
            "snapshotFormat": {"hivePartitioned": {}},
            "dataCompression": "ZSTD",
            "snapshotAutoDelete": {"maxOldSnapshots": 80},
        },
        "checks": [{"name": "amounts", "expression": "data.amount >= 0", "mode": "WARN"}],
        "run": {"freshness": {"maxAge": {"day": 2}}},
        **changed,
    }  # fmt: skip
    documents: Sequence[object] = (
        *(
            _document("DataSource", name, {"hdfsLike": json.loads(
                json.dumps(source).replace("NAME", name))})
            for name in names
        ),
        *(_document("DataRelationship", name, _relationship(*key)) for name, key in keys.items()),
        _document("OutputDataset", "orders-wide", output),
    )  # fmt: skip
    path = folder / "model.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    return path


def _document(kind: str, name: str, spec: object) -> dict[str, object]:
    return {
        "apiVersion": "snaploom.io/v1alpha1", "kind": kind, "metadata": {"name": name},
        "spec": spec,
    }  # fmt: skip


def _relationship(sources: tuple[str, ...], column: str, type_: str) -> dict[str, object]:
    key = {
        "fields": [{"fieldName": column, "dataType": {type_: {}}}],
        "castDataType": {type_: {}},
    }
    return {"representations": [{"dataSources": list(sources), "joinKey": [key]}]}


HOURLY = replace(
    Events(), step=3_600 * 10**9, gaps=tuple(range(500, 540)), deleted=tuple(range(100))
)
"""Events of long histories."""
