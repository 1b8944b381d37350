"""The table of snapshots: the newest as HTML, all as data that the page's script pages through."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from snaploom.models.times import NANOS_PER_MILLISECOND, EpochNanos, parse_instant
from snaploom.planning.retention import Removal
from snaploom.site.markup import NOTHING, Html, data_block, join, table, tag
from snaploom.site.pagedata import OutputPage, size_of
from snaploom.site.quantities import number, shortened, size, span
from snaploom.site.timeline import marks_of
from snaploom.storage.entries import SnapshotRecord

ROWS = 30
"""Rows of one page of the table, and those that are there without scripts."""
MOST_ROWS = 20_000
"""Snapshots that are in the page's data; of older ones the drawings and sums remain."""
LONGEST_MARK = 300
"""Characters of the notes about one snapshot."""
_MINUTE = 60 * 10**9
COLUMNS = ("snapshot", "rows", "size", "files", "published", "from source snapshots", "notable")


def snapshot_table(page: OutputPage) -> Html:
    """The newest snapshots, and controls by which the script shows the others."""
    records = page.snapshots[-MOST_ROWS:]
    if not records:
        return tag("p", "No snapshot is published.")
    going = {removal.time: removal for removal in page.going}
    rows = [_row(record, going) for record in reversed(records[-ROWS:])]
    total, listed = len(page.snapshots), len(records)
    notes = [
        tag("p", f"The newest {listed:,} of {total:,} are listed.", class_="quiet")
        if listed < total
        else NOTHING,
        tag(
            "p",
            f"Shown are the newest {len(rows):,} of {total:,}: `snaploom snapshots` lists all, "
            "and so does this page where scripts run.",
            class_="quiet unscripted",
        )
        if len(rows) < total
        else NOTHING,
    ]
    return join([
        _controls() if len(rows) > 1 else NOTHING,
        table(
            "Snapshots, the newest first", COLUMNS, rows, numbers=(1, 2, 3), name="snapshot-table"
        ),
        *notes,
        data_block("snapshot-data", _document(records, going)),
    ])  # fmt: skip


def _controls() -> Html:
    return tag(
        "form",
        tag(
            "label",
            "On or before ",
            tag("input", type="search", id="until", placeholder="2024-05-31", size=12),
        ),
        tag("label", tag("input", type="checkbox", id="notable"), " only what is notable"),
        tag("button", "Newer", type="button", id="newer"),
        tag("button", "Older", type="button", id="older"),
        tag("output", "", id="shown", aria_live="polite"),
        class_="controls scripted",
        id="paging",
        aria_label="Snapshots to show",
    )


def _row(record: SnapshotRecord, going: dict[EpochNanos, Removal]) -> tuple[str | Html, ...]:
    return (
        tag("code", shortened(record.time)),
        number(record.rows),
        size(size_of(record)),
        number(len(record.files)),
        shortened(EpochNanos(record.created_at // _MINUTE * _MINUTE)),
        "; ".join(f"{name} {lag}" for name, lag in _lags_in_words(record)) or "same time",
        "; ".join(_marks(record, going)),
    )


def _marks(record: SnapshotRecord, going: dict[EpochNanos, Removal]) -> tuple[str, ...]:
    removal = going.get(record.time)
    ending = () if removal is None else (f"deleted next by {removal.rule.value}",)
    return tuple(mark[:LONGEST_MARK] for mark in (*marks_of(record), *ending))


def lags_of(record: SnapshotRecord) -> Iterable[tuple[str, int]]:
    """How much older the snapshot of each source is, in nanoseconds; the root's is as old."""
    for source in record.sources:
        if source.field_name:
            yield source.field_name, record.time - parse_instant(source.time)


def _lags_in_words(record: SnapshotRecord) -> Iterable[tuple[str, str]]:
    for name, lag in lags_of(record):
        if lag:
            taken = shortened(EpochNanos(record.time - lag))
            yield name, f"{taken}, {span(lag)} {'before' if lag > 0 else 'after'}"


def _document(records: Sequence[SnapshotRecord], going: dict[EpochNanos, Removal]) -> JsonValue:
    """Columns instead of rows, and differences instead of instants: a third of the bytes."""
    names = list(dict.fromkeys(name for record in records for name, _ in lags_of(record)))
    lags: dict[str, list[JsonValue]] = {name: [] for name in names}
    for record in records:
        known = dict(lags_of(record))
        for name in names:
            lag = known.get(name)
            lags[name].append(None if lag is None else lag // NANOS_PER_MILLISECOND)
    notable = ["; ".join(_marks(record, going)) for record in records]
    texts = list(dict.fromkeys(notable))
    places = {mark: place for place, mark in enumerate(texts)}
    return {
        "t": _differences([record.time // NANOS_PER_MILLISECOND for record in records]),
        "c": _differences([record.created_at // NANOS_PER_MILLISECOND for record in records]),
        "r": [record.rows for record in records],
        "b": [size_of(record) for record in records],
        "f": [len(record.files) for record in records],
        "s": {name: _runs(values) for name, values in lags.items()},
        "marks": list(texts),
        "m": _runs(places[mark] for mark in notable),
        "page": ROWS,
    }


def _differences(values: Sequence[int]) -> list[JsonValue]:
    return [value - before for before, value in zip((0, *values), values, strict=False)]


def _runs(values: Iterable[JsonValue]) -> list[JsonValue]:
    found: list[list[JsonValue]] = []
    counts: list[int] = []
    for value in values:
        if found and found[-1][1] == value:
            counts[-1] += 1
            found[-1][0] = counts[-1]
        else:
            found.append([1, value])
            counts.append(1)
    return list(found)
