"""Reads a bounded part of each source, and keeps its profile.

Of Parquet and ORC footers give counts, and only rows of a sample are read, beside columns that may
be keys. Of text and Avro the beginning of the newest snapshots is read, and of text that of some
older files for names and types of columns.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

import pyarrow as pa

from snaploom.discovery.databases import DatabaseAddress, DatabaseTable, ReadTable
from snaploom.discovery.datecolumns import with_snapshot_column
from snaploom.discovery.fileformat import NotRecognised, refuse_width
from snaploom.discovery.foundfiles import LeftOut
from snaploom.discovery.layout import Layout
from snaploom.discovery.names import words_of
from snaploom.discovery.objectfile import Meter
from snaploom.discovery.profiles import ForeignKey, SourceProfile
from snaploom.discovery.siblings import siblings_of
from snaploom.discovery.tablecontents import profile_table_folder
from snaploom.discovery.tablefolders import TableFolder
from snaploom.discovery.textsamples import profile_text
from snaploom.discovery.thresholds import LONGEST_NAME, LONGEST_URI, MOST_SNAPSHOTS_READ
from snaploom.discovery.typedfiles import TYPED_FORMATS, DataFile, profile_rows, profile_typed
from snaploom.errors import StorageError


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
