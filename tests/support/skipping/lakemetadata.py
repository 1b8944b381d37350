"""Metadata stores of every version about the files of a `Lake`, as the reference lays them out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from support.skipping.indexinterfaces import Lake
from support.skipping.proofjava import java_min_max, java_value_list
from support.skipping.xskipperfiles import (
    array_of,
    field,
    index_metadata,
    java_type,
    struct_of,
    write_part,
)

BOUNDS = pa.struct([("min", pa.float64()), ("max", pa.float64())])
SCATTERED = 2
"""From this version on a column's name contains its length."""


@dataclass(frozen=True)
class StoredRow:
    """What a store contains about one file."""

    path: str
    modified: int
    prices: tuple[float, float]
    names: tuple[str, ...]


Change = Callable[[list[StoredRow]], Sequence[StoredRow]]


def true_rows(lake: Lake) -> list[StoredRow]:
    """What is so, in the order of days."""
    rows: list[StoredRow] = []
    for path in sorted(Path(lake.data).rglob("*.parquet")):
        table = pq.ParquetFile(path).read()
        prices, names = table["price"].to_pylist(), table["name"].to_pylist()
        modified = path.stat().st_mtime_ns // 1_000_000
        rows.append(StoredRow(str(path), modified, (min(prices), max(prices)), tuple(names)))
    return rows


def write_lake_store(lake: Lake, version: int, change: Change = list, identifier: str = "") -> Path:
    """A store with minmax of `price` and valuelist of `name`.

    Args:
        lake: the files.
        version: 0 to 4.
        change: what is written instead of the truth.
        identifier: of another table.
    """
    folder = lake.folder / f"metadata-{version}"
    rows = change(true_rows(lake))
    table = identifier or lake.data
    named = {"tableIdentifier": table} if version else {}
    owner = {} if version else {"tableIdentifier": table.removeprefix("/")}
    length = {"price": "_5", "name": "_4"} if version >= SCATTERED else {"price": "", "name": ""}
    price, name = f"price_minmax{length['price']}", f"name_valuelist{length['name']}"
    java = java_type("io.xskipper.metadatastore.parquet.MetaDataTypeUDT")
    fields = [
        field("obj_name", "string", {"version": version, **named}),
        field(price, struct_of("double") if version else java, _index("minmax", "price", owner)),
        field(name, array_of("string") if version else java, _index("valuelist", "name", owner)),
    ]
    bounds, names = [row.prices for row in rows], [row.names for row in rows]
    columns = {
        "obj_name": pa.array([f"{row.path}#{row.modified}" for row in rows]),
        price: pa.array([{"min": low, "max": high} for low, high in bounds], BOUNDS)
        if version
        else pa.array([java_min_max(each, "double") for each in bounds], pa.binary()),
        name: pa.array(names, pa.list_(pa.string()))
        if version
        else pa.array(
            [java_value_list([each.encode() for each in values], "string") for values in names],
            pa.binary(),
        ),
    }
    write_part(folder, "part-0.snappy.parquet", fields, columns)
    return folder


def _index(name: str, column: str, owner: dict[str, str]) -> object:
    return index_metadata(name, [column], **owner)


def with_prices(number: int, prices: tuple[float, float]) -> Change:
    """Other bounds for one file."""
    return lambda rows: [
        replace(row, prices=prices) if place == number else row for place, row in enumerate(rows)
    ]


def older(number: int) -> Change:
    """One file as it was a second before."""
    return lambda rows: [
        replace(row, modified=row.modified - 1000) if place == number else row
        for place, row in enumerate(rows)
    ]


def with_foreign_file(rows: list[StoredRow]) -> list[StoredRow]:
    """A row about a file that is not there."""
    return [*rows, StoredRow("/elsewhere/x.parquet", 1, (0.0, 0.0), ("x",))]
