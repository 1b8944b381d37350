"""Reads a bounded part of each source, and finds files that are parts of one table."""

from __future__ import annotations

import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import combinations, takewhile

import numpy as np
import pyarrow as pa

from snaploom.errors import StorageError
from snaploom.plugins.discovery.datecolumns import with_snapshot_column
from snaploom.plugins.discovery.foundfiles import (
    LONGEST_NAME,
    LONGEST_URI,
    MOST_SNAPSHOTS_READ,
    LeftOut,
    NotRecognised,
    refuse_width,
)
from snaploom.plugins.discovery.layout import Layout, TableFolder, merged_layout, takes_others
from snaploom.plugins.discovery.names import column_words, words_of
from snaploom.plugins.discovery.paths import Kind
from snaploom.plugins.discovery.profiles import (
    DatabaseAddress,
    DatabaseTable,
    ForeignKey,
    ReadTable,
    SourceProfile,
)
from snaploom.plugins.discovery.relationships import FEWEST_ROWS, single_keys
from snaploom.plugins.discovery.tablecontents import profile_table_folder
from snaploom.plugins.discovery.textsamples import profile_text
from snaploom.plugins.discovery.typedfiles import (
    TYPED_FORMATS,
    DataFile,
    Meter,
    profile_rows,
    profile_typed,
)

# Files that are parts of one table, though names differ in a word: orders_north, orders_south.

_FEWEST_COLUMNS = 4
"""Columns from which two tables do not have the same ones by chance: lists have code and name."""
_BOUNDARY = re.compile(r"[_\-. /]")


def siblings_of(profiles: Iterable[SourceProfile]) -> tuple[tuple[Layout, tuple[str, ...]], ...]:
    """Layouts of files that are parts of one table, each with the names of the sources it joins."""
    groups: dict[object, list[tuple[Layout, SourceProfile]]] = defaultdict(list)
    for profile in profiles:
        if isinstance(profile.origin, Layout) and len(profile.columns) >= _FEWEST_COLUMNS:
            columns = tuple(column.name.casefold() for column in profile.columns)
            place = profile.origin.files[0].place.uri
            options = tuple(sorted(profile.format_options.items()))
            key = (place, profile.origin.data_format, columns, options)
            groups[key].append((profile.origin, profile))
    files = [f for p in profiles if isinstance(p.origin, Layout) for f in p.origin.files]
    found = []
    for members in groups.values():
        layouts = [layout for layout, _ in members]
        pieces = _common_pieces(layouts)
        if pieces is None or not _are_parts([profile for _, profile in members]):
            continue
        merged = merged_layout(layouts, *pieces)
        if not takes_others(merged, (f for f in files if f.place == layouts[0].files[0].place)):
            found.append((merged, tuple(profile.name for _, profile in members)))
    return tuple(found)


def _common_pieces(layouts: Sequence[Layout]) -> tuple[int, str, str] | None:
    """The one text in which names differ, by its place, and the text around the word that differs.

    None where they differ in more.
    """
    if len(layouts) < 2 or len({len(layout.pieces) for layout in layouts}) > 1:
        return None
    rows = list(zip(*(layout.pieces for layout in layouts), strict=True))
    differing = [index for index, row in enumerate(rows) if len(set(row)) > 1]
    if len(differing) != 1 or any(piece.kind is not Kind.TEXT for piece in rows[differing[0]]):
        return None
    texts = [piece.text for piece in rows[differing[0]]]
    before = _common_start(texts)
    behind = _common_start([text[len(before) :][::-1] for text in texts])[::-1]
    before = before[: max((m.end() for m in _BOUNDARY.finditer(before)), default=0)]
    start = next((m.start() for m in _BOUNDARY.finditer(behind)), len(behind))
    behind = behind[start:]
    variants = [text[len(before) : len(text) - len(behind)] for text in texts]
    if not all(variants) or any(_BOUNDARY.search(variant) for variant in variants):
        return None
    is_folder = behind.startswith("/")
    is_suffix = bool(before) and not before.endswith("/") and not words_of(_stem(behind))
    return (differing[0], before, behind) if is_folder or is_suffix else None


def _common_start(texts: Sequence[str]) -> str:
    letters = takewhile(lambda row: len(set(row)) == 1, zip(*texts, strict=False))
    return "".join(row[0] for row in letters)


def _stem(behind: str) -> str:
    return behind.partition(".")[0]


def _are_parts(profiles: Sequence[SourceProfile]) -> bool:
    """Whether all have the same key, of which no two have a value in common."""
    if any(len(profile.snapshot) < FEWEST_ROWS for profile in profiles):
        return False
    keys = {key.columns[0] for profile in profiles for key in single_keys(profile)[:1]}
    if len(keys) != 1 or not all(single_keys(profile) for profile in profiles):
        return False
    (key,) = keys
    if not column_words(key, profiles[0].prefix).has_id:
        return False
    sketches = [profile.column(key).sketch.kept for profile in profiles]
    return not any(
        np.isin(one, other, assume_unique=True).any() for one, other in combinations(sketches, 2)
    )


# Reads a bounded part of each source, and keeps its profile.


def profiles_of(
    layouts: Sequence[Layout],
    meter: Meter,
    tables: Sequence[TableFolder] = (),
    databases: Sequence[tuple[DatabaseAddress, Sequence[ReadTable]]] = (),
) -> tuple[tuple[SourceProfile, ...], tuple[LeftOut, ...]]:
    """Profiles of sources, and those that could not be read, with the reason."""
    anchor = anchor_of(layouts)
    taken = {layout.name.casefold() for layout in layouts}
    profiles: list[SourceProfile] = []
    left_out: list[LeftOut] = []
    for layout in layouts:
        work = partial(_profile, layout, anchor, meter)
        _keep(work, _place(layout), layout.data_format, profiles, left_out)
    for layout, parts in siblings_of(profiles):
        taken.difference_update(name.casefold() for name in parts)
        profiles = [profile for profile in profiles if profile.name not in parts]
        named = replace(layout, name=_free(taken, layout.name))
        work = partial(_profile, named, anchor, meter)
        _keep(work, _place(layout), layout.data_format, profiles, left_out)
    for table in tables:
        folder = table.uri.rpartition("/")[0].rpartition("/")[2]
        name = _free(
            taken, table.name, f"{folder}_{table.name}", f"{table.name}_{table.data_format}"
        )
        work = partial(profile_table_folder, replace(table, name=name), meter)
        _keep(work, table.uri, table.data_format, profiles, left_out)
    for address, read in databases:
        names = {
            each.reference: _free(taken, each.name, "_".join(words_of(each.reference)))
            for each in read
        }
        for each in read:
            work = partial(_of_database, address, each, names)
            _keep(work, f"{address.uri} {each.reference}", "a table", profiles, left_out)
    return tuple(map(with_snapshot_column, _with_known_parents(profiles))), tuple(left_out)


def _keep(
    work: Callable[[], SourceProfile],
    place: str,
    data_format: str,
    profiles: list[SourceProfile],
    left_out: list[LeftOut],
) -> None:
    """Add the profile that some work gives, or why there is none."""
    try:
        profile = work()
        refuse_undeclarable(profile)
        profiles.append(profile)
    except NotRecognised as error:
        left_out.append(LeftOut(place, str(error)))
    except RecursionError:
        left_out.append(LeftOut(place, "values are nested too deeply"))
    except (pa.ArrowException, ArithmeticError, OSError, EOFError, zlib.error, ValueError) as error:
        first = str(error).split("\n", 1)[0][:200]
        left_out.append(LeftOut(place, f"not readable as {data_format}: {first}"))
    except StorageError as error:
        left_out.append(LeftOut(place, error.message))


def _free(taken: set[str], *wanted: str) -> str:
    options = (*wanted, *(f"{wanted[0]}_{number}" for number in range(2, len(taken) + 3)))
    name = next(option for option in options if option.casefold() not in taken)
    taken.add(name.casefold())
    return name


def _of_database(
    address: DatabaseAddress, table: ReadTable, names: Mapping[str, str]
) -> SourceProfile:
    """The profile of a table, whose foreign keys name profiles."""
    profile = profile_rows(
        names[table.reference], DatabaseTable(address, table.reference), table.sample, table.rows
    )
    return replace(
        profile,
        primary_key=table.primary_key,
        foreign_keys=tuple(
            ForeignKey(key.name, key.columns, names[key.parent], key.parent_columns)
            for key in table.foreign_keys
            if key.parent in names
        ),
    )


def _with_known_parents(profiles: Sequence[SourceProfile]) -> Iterator[SourceProfile]:
    columns = {p.name: {column.name for column in p.columns} for p in profiles}
    for profile in profiles:
        kept = tuple(
            key for key in profile.foreign_keys
            if columns[profile.name].issuperset(key.columns)
            and columns.get(key.parent, set()).issuperset(key.parent_columns)
        )  # fmt: skip
        yield replace(profile, foreign_keys=kept)


def refuse_undeclarable(profile: SourceProfile) -> None:
    """Refuse tables that declarations cannot express.

    Raises:
        NotRecognised: with the reason.
    """
    names = [column.name for column in profile.columns]
    if not names:
        raise NotRecognised("no columns")
    refuse_width(len(names))
    if not all(0 < len(name) <= LONGEST_NAME for name in names):
        raise NotRecognised(f"a column whose name is empty or longer than {LONGEST_NAME}")
    if len({name.casefold() for name in names}) < len(names):
        raise NotRecognised("columns whose names are equal but for capitals")
    origin = profile.origin
    uri = origin.files[0].uri if isinstance(origin, Layout) else ""
    if len(uri) > LONGEST_URI:
        raise NotRecognised(f"paths longer than {LONGEST_URI:,} characters")


def _place(layout: Layout) -> str:
    first = layout.files[-1].uri
    more = len(layout.files) - 1
    return first if not more else f"{first} and {more} more"


def anchor_of(layouts: Iterable[Layout]) -> datetime | None:
    """The time at which most sources have a snapshot, the newest of these; None without dates.

    Sources are compared as of one time: then keys of one day meet the register of that day.
    """
    times = Counter(time for layout in layouts for time in layout.snapshots)
    if not times:
        return None
    most = max(times.values())
    return max(time for time, count in times.items() if count == most)


def _chosen_times(layout: Layout, anchor: datetime | None) -> list[datetime | None]:
    """Snapshots to look at: the newest up to the anchor first."""
    times = layout.snapshots
    if not times or anchor is None:
        return [None]
    past = [time for time in times if time <= anchor]
    chosen = list(reversed(past or times[:1]))
    return list(chosen[:MOST_SNAPSHOTS_READ])


def _profile(layout: Layout, anchor: datetime | None, meter: Meter) -> SourceProfile:
    times = _chosen_times(layout, anchor)
    if layout.data_format not in TYPED_FORMATS:
        return profile_text(layout, times, meter)
    files = [
        DataFile(number, file, layout.data_format)
        for number, time in enumerate(times, start=1)
        for file in layout.files_at(time)
    ]
    return profile_typed(layout.name, layout, files, meter)
