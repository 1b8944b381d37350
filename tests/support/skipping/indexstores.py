"""What every `IndexStore` must do, as functions of the tests that any store's suite can call."""

import multiprocessing
import os
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from support.skipping.faketarget import FakeTarget

from snaploom.files.local import LocalObjectStore
from snaploom.models.common import EpochNanos
from snaploom.models.skippingindex import IndexState, RefreshMode
from snaploom.skipping.core.definition import (
    IndexDefinition,
    ReaderFingerprint,
    SkippingDefinition,
    Target,
    Term,
    column_term,
)
from snaploom.skipping.core.filetable import FileTable
from snaploom.skipping.lifecycle.operations import refresh
from snaploom.skipping.stores.folder import FolderIndexStore
from snaploom.skipping.stores.port import IndexStore, Segment, StoredState

SPAWN = multiprocessing.get_context("spawn")
DEADLINE = 120


def folder_store(root: Path) -> FolderIndexStore:
    return FolderIndexStore(LocalObjectStore(root, create=True))


def commit_many(root: Path, number: int, turns: int) -> None:
    store = folder_store(root)
    for turn in range(turns):
        committed(store, *write(store, {f"{number}-{turn}": (number, turn)}))


class DyingStore(FolderIndexStore):
    """Kills its process before or after a step of a refresh."""

    point = ""

    def write_rows(self, rows, definition):  # type: ignore[no-untyped-def]
        self._die("before rows")
        segments = super().write_rows(rows, definition)
        self._die("after rows")
        return segments

    def commit(self, build):  # type: ignore[no-untyped-def]
        state: StoredState = super().commit(build)
        self._die(f"after {state.phase.value}")
        return state

    def sweep(self, keep, older_than):  # type: ignore[no-untyped-def]
        self._die("before sweep")
        return super().sweep(keep, older_than)

    def _die(self, point: str) -> None:
        if point == self.point:
            os.kill(os.getpid(), signal.SIGKILL)


POINTS = ("after refreshing", "before rows", "after rows", "after active", "before sweep")
"""Steps at which a refresh can be killed, in order; the commit lies before the fourth."""


def refresh_and_die(root: Path, target: FakeTarget, point: str) -> None:
    store = DyingStore(LocalObjectStore(root, create=True))
    store.point = point
    refresh(store, target)


URI = "file:/data/flights"
NOW = EpochNanos(1_700_000_000_000_000_000)

Rows = Mapping[str, tuple[int, int | None]]
"""For each file: modification time, and what its index `i1` has as least value."""


def index(index_id: str, column: str = "a", data_type: str = "bigint") -> IndexDefinition:
    return IndexDefinition(index_id, "MIN_MAX", (column_term((column,), data_type),))


def definition(*index_ids: str) -> SkippingDefinition:
    return SkippingDefinition(
        target=Target(URI, format="parquet"),
        fingerprint=ReaderFingerprint("parquet", settings=(("zone", "UTC"),)),
        indexes=tuple(index(index_id, f"c{index_id}") for index_id in index_ids or ("i1",)),
    )


def full_definition() -> SkippingDefinition:
    """Every field has a value of its own."""
    return SkippingDefinition(
        target=Target(URI, "cat.db.t", "csv", (("header", "true"), ("sep", "\t"))),
        fingerprint=ReaderFingerprint("csv", (("sep", "\t"),), (("zone", "Zürich"),), '{"x":1}'),
        indexes=(
            IndexDefinition(
                "i7",
                "OF_OTHERS",
                (Term('["a.b","c"]', "decimal(10,2)", "`a.b`.c"), column_term(("d",), "string")),
                (("limit", "5"),),
                enabled=False,
                key_label="k1",
            ),
        ),
        where="day > '2020'",
        partition_columns=(("z", "date"), ("a", "string")),
        enabled=False,
        mode=RefreshMode.FULL,
        owner="SkippingIndex/x",
        form="XSKIPPER",
        footer_key_label="k2",
        plaintext_footer=True,
        properties=(("p", "\U0001f600"),),
    )


def table(rows: Rows, index_id: str = "i1") -> pa.Table:
    least = [value for _, value in rows.values()]
    known = [0 if value is None else 10 for value in least]
    return pa.table({
        "path": pa.array([f"{URI}/{name}" for name in rows], pa.large_string()),
        "length": pa.array([100] * len(rows), pa.int64()),
        "modified": pa.array([modified for modified, _ in rows.values()], pa.int64()),
        "etag": pa.array([None] * len(rows), pa.large_string()),
        f"{index_id}.values": pa.array(known, pa.int64()),
        f"{index_id}.nulls": pa.array([1] * len(rows), pa.int64()),
        f"{index_id}.min": pa.array(least, pa.int64()),
        f"{index_id}.max": pa.array(least, pa.int64()),
    })  # fmt: skip


def contents(files: FileTable, *index_ids: str) -> dict[str, tuple[object, ...]]:
    """Modification time and least value of each index, by name of the file."""
    names = [path.removeprefix(f"{URI}/") for path in files.column("path").to_pylist()]
    columns = ["modified", *(f"{index_id}.min" for index_id in index_ids or ("i1",))]
    values = zip(*(files.column(column).to_pylist() for column in columns), strict=True)
    found = dict(zip(names, values, strict=True))
    assert len(found) == files.count == len(names)
    return found


def committed(
    store: IndexStore, *segments: Segment, index_ids: tuple[str, ...] = ()
) -> StoredState:
    """Add segments to the state; the definition is kept about `index_ids` from here on."""

    def build(state: StoredState) -> StoredState:
        declared = state.definition or definition()
        return replace(
            state,
            phase=IndexState.ACTIVE,
            definition=definition(*index_ids) if index_ids else declared,
            segments=(*state.segments, *segments),
            refreshed_at=NOW,
            committed_at=NOW,
        )

    return store.commit(build)


def write(store: IndexStore, rows: Rows, index_id: str = "i1") -> list[Segment]:
    return store.write_rows([table(rows, index_id)], definition(index_id))


def remove(store: IndexStore, *names: str) -> Segment:
    return store.write_removed([f"{URI}/{name}" for name in names], definition())
