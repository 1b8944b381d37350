"""A small model with real files, to be spoilt in one place and run through the command line.

Orders (the root) name customers, one Parquet file a day each. Commands run in this process: a
session that is active already is used again, so that one Spark serves every case.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from pyarrow import parquet
from support.declared.declarations import Raw, document, put

from snaploom.cli.main import COMMANDS, ENTRY_POINTS, run_command

COMMANDS_OF_LAPTOPS = [
    name
    for table in (COMMANDS, *(
        entry.load().COMMANDS
        for entry in entry_points(group=ENTRY_POINTS)
        if entry.value.startswith("snaploom.plugins.")
    ))
    for name, _, _ in table
]  # fmt: skip
"""Commands of the library, those of its plug-ins too."""

Rows = Sequence[Mapping[str, object]]
NOW = "2024-06-01T00:00:00Z"
"""When commands believe they run."""
FIRST_DAY, SECOND_DAY = "2024-05-01", "2024-05-02"
ORDERS: Rows = (
    {"order_id": 1, "customer_id": 10, "amount": 5.0},
    {"order_id": 2, "customer_id": 11, "amount": 7.5},
    {"order_id": 3, "customer_id": 12, "amount": 9.0},
)
CUSTOMERS: Rows = (
    {"customer_id": 10, "name": "Ada"},
    {"customer_id": 11, "name": "Grace"},
)


@dataclass(frozen=True)
class CommandResult:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The JSON on standard output, which holds nothing else."""
        return json.loads(self.out)


def done(result: CommandResult) -> CommandResult:
    assert result.code == 0, result.err + result.out
    return result


NOISE = ("Traceback", "Exception", ".scala", "SQLSTATE", "Py4J", "WARN", "internal error")


def assert_one_error(result: CommandResult, *texts: str, code: int = 1) -> None:
    assert result.code == code, result.err
    for text in ("found:", "expected:", "fix:"):
        assert result.err.count(f"  {text}") == 1, result.err
    for text in texts:
        assert text in result.err
    assert not [noise for noise in NOISE if noise in result.err + result.out], result.err


def snaploom(*arguments: object) -> CommandResult:
    """Run the command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run_command([str(argument) for argument in arguments])
    return CommandResult(code, out.getvalue(), err.getvalue())


def write_rows(path: Path, rows: Rows | pa.Table) -> Path:
    """Write rows as one Parquet file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist([dict(r) for r in rows])
    parquet.write_table(table, path)
    return path


def day_source(folder: Path, name: str, **changes: Any) -> Raw:
    """A source with a Parquet file a day, `<folder>/<name>/<day>.parquet`."""
    spec = {
        "format": "parquet",
        "sourceUriGlobs": [f"file://{folder}/{name}/*.parquet"],
        "sourceUriPrefix": f"file://{folder}/{name}/{{day:STRING}}.parquet",
        "snapshot": {"fromFieldValue": {"fieldName": "day", "timeFormat": "ISO8601_DATE"}},
    }
    return document("DataSource", name, {"hdfsLike": spec | changes})


def same_key(name: str, field_name: str, *sources: str, data_type: str = "long") -> Raw:
    """A relationship over sources that all call the key by one name and agree on its type."""
    key = {
        "fields": [{"fieldName": field_name, "dataType": {data_type: {}}}],
        "castDataType": {data_type: {}},
    }
    return document(
        "DataRelationship",
        name,
        {"representations": [{"dataSources": list(sources), "joinKey": [key]}]},
    )


def wide(folder: Path, *others: str | Raw, relationships: Sequence[str] = ("customer-id",)) -> Raw:
    """The output `wide` of `orders`; `others` are names, or raw `otherDataSources`."""
    start = dict.fromkeys(("hour", "minute", "second", "nano"), 0) | {"timezone": "UTC"}
    interval = {
        "intervalStartDate": start | {"year": 2024, "month": 5, "day": 1},
        "intervalLength": {"day": 1},
    }
    listed = [{"dataSource": o, "fieldName": o} if isinstance(o, str) else o for o in others]
    root = {"dataSource": "orders", "snapshotFilter": {"fromInterval": interval}}
    data_model = {
        "rootDataSource": root,
        "otherDataSources": listed,
        "dataRelationships": [{"name": name} for name in relationships],
    }
    place = {"folderUri": f"file://{folder}/wide/", "snapshotFormat": {"hivePartitioned": {}}}
    return document("OutputDataset", "wide", {"dataModel": data_model, "outputFolder": place})


@dataclass
class Shop:
    """Files and declarations below one folder."""

    folder: Path
    documents: list[Raw] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin with a model that is sound."""
        if not self.documents:
            self.documents = [
                day_source(self.folder, "orders"),
                day_source(self.folder, "customers"),
                same_key("customer-id", "customer_id", "orders", "customers"),
                wide(self.folder, "customers"),
            ]

    @property
    def model(self) -> Path:
        return self.folder / "model.yaml"

    @property
    def published(self) -> Path:
        return self.folder / "wide"

    def day(self, name: str, rows: Rows | pa.Table, day: str = FIRST_DAY) -> Path:
        """Write one day of a source."""
        return write_rows(self.folder / name / f"{day}.parquet", rows)

    def with_data(self) -> Shop:
        """One sound day of both sources."""
        self.day("orders", ORDERS)
        self.day("customers", CUSTOMERS)
        return self

    def with_two_days(self) -> Shop:
        """Two days, the second with one customer only; rows have a key."""
        self.with_data().day("orders", ORDERS, SECOND_DAY)
        self.day("customers", ORDERS[:1], SECOND_DAY)
        return self.set("wide", "dataModel.rootDataSource.rootKey", ["order_id"])

    def set(self, name: str, path: str, value: Any) -> Shop:
        """Change a declaration at a dotted path below its spec."""
        put(self.raw(name)["spec"], path, value)
        return self

    def raw(self, name: str) -> Raw:
        return next(raw for raw in self.documents if raw["metadata"]["name"] == name)

    def other(self, **settings: Any) -> Shop:
        """Change how `wide` takes its first other source."""
        self.raw("wide")["spec"]["dataModel"]["otherDataSources"][0].update(settings)
        return self

    def write(self) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        text = yaml.safe_dump_all(self.documents, sort_keys=False, allow_unicode=True)
        self.model.write_text(text, "utf-8")
        return self.model

    def validate(self, *options: object) -> CommandResult:
        return snaploom("validate", self.write(), *options)

    def plan(self, *options: object) -> CommandResult:
        return snaploom("plan", "wide", "-f", self.write(), "--now", NOW, *options)

    def run(self, *options: object) -> CommandResult:
        return snaploom("run", "wide", "-f", self.write(), "--now", NOW, *options)

    def data_files(self) -> list[str]:
        """Files of data below the output's folder, staged ones included."""
        return sorted(
            str(path.relative_to(self.published))
            for path in self.published.rglob("*")
            if path.is_file() and "metadata" not in path.relative_to(self.published).parts
        )

    def published_times(self) -> list[str]:
        """Times of the snapshots in the manifest; none when there is no folder."""
        if not self.published.exists():
            return []
        result = snaploom("snapshots", self.published, "-o", "json")
        return [one["time"] for one in result.document["snapshots"]] if result.code == 0 else []
