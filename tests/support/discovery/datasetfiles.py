"""Writes tables of known data sets the ways exports arrive."""

import csv
import gzip
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as paorc
import pyarrow.parquet as pq

Row = dict[str, object]
FIRST_DAY = date(2026, 1, 1)


@dataclass(frozen=True)
class Table:
    """A table with the place of its files."""

    name: str
    path: str
    """Of a file below the data set's folder, with `{day}` and its like where it is dated."""
    days: Sequence[Sequence[Row]]
    """Rows of each day; one member for a table without dates."""
    separator: str = ","
    encoding: str = "utf-8"
    has_header: bool = True
    step: int = 1
    """Days between two snapshots."""


Link = tuple[str, tuple[str, ...], str, tuple[str, ...]]
"""Child, its columns, parent, its columns."""


def link(text: str) -> Link:
    """A relationship as text: `orders.customer_id > customers.id`, several columns by `+`."""
    child, _, parent = text.partition(" > ")
    (one, _, mine), (other, _, theirs) = child.partition("."), parent.partition(".")
    return one, tuple(mine.split("+")), other, tuple(theirs.split("+"))


def links(*texts: str) -> frozenset[Link]:
    return frozenset(map(link, texts))


@dataclass(frozen=True)
class DataSet:
    """Tables whose relationships are known."""

    name: str
    tables: Sequence[Table]
    truth: frozenset[Link]
    """What has to be found."""
    also_right: frozenset[Link] = frozenset()
    """What follows from the truth, or is right as well: neither missed nor wrong."""
    junk: dict[str, bytes] = field(default_factory=dict)
    """Other files, by their paths."""

    def write(self, folder: Path) -> None:
        for table in self.tables:
            for number, rows in enumerate(table.days):
                day = FIRST_DAY + timedelta(days=number * table.step)
                path = folder / table.path.format(
                    day=day.isoformat(), compact=day.strftime("%Y%m%d"), year=day.year,
                    month=f"{day.month:02d}", dd=f"{day.day:02d}", german=day.strftime("%d.%m.%Y"),
                    week=day.strftime("%G-W%V"),
                )  # fmt: skip
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(_content(path.name, rows, table))
        for name, content in self.junk.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)


def _content(name: str, rows: Sequence[Row], table: Table) -> bytes:
    plain = name.removesuffix(".gz")
    if plain.endswith((".parquet", ".orc", ".arrow")):
        sink = io.BytesIO()
        data = pa.Table.from_pylist(list(rows))
        if plain.endswith(".orc"):
            paorc.write_table(data, sink)
        elif plain.endswith(".arrow"):
            with pa.ipc.new_stream(sink, data.schema) as out:
                out.write_table(data)
        else:
            pq.write_table(data, sink, coerce_timestamps="us")
        return sink.getvalue()
    if plain.endswith((".json", ".jsonl", ".ndjson")):
        text = "".join(json.dumps(row, default=str) + "\n" for row in rows)
    else:
        lines = io.StringIO(newline="")
        writer = csv.writer(lines, delimiter=table.separator, lineterminator="\n")
        if table.has_header:
            writer.writerow(rows[0].keys())
        writer.writerows(row.values() for row in rows)
        text = lines.getvalue()
    content = text.encode(table.encoding)
    return gzip.compress(content, mtime=0) if name.endswith(".gz") else content
