"""Reads a bounded part of each source, and finds files that are parts of one table."""

import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import combinations, takewhile

import duckdb

from snaploom.errors import StorageError
from snaploom.files.measured import FileTable
from snaploom.files.typedfiles import FAULTS
from snaploom.files.workbooks import CellError
from snaploom.models.shortforms import MONTH_NAME
from snaploom.plugins.discovery import typedfiles
from snaploom.plugins.discovery.datecolumns import with_snapshot_column
from snaploom.plugins.discovery.dates import STRING, Unit
from snaploom.plugins.discovery.foundfiles import (
    ALL_BYTES,
    LEAST_BYTES,
    LONGEST_NAME,
    LONGEST_URI,
    MOST_PARTS,
    PACKED,
    SECONDS,
    SOURCE_BYTES,
    FoundFile,
    Guess,
    LeftOut,
    NotRecognised,
    refuse_width,
)
from snaploom.plugins.discovery.keys import FEWEST_ROWS, single_keys
from snaploom.plugins.discovery.layout import (
    Layout,
    TableFolder,
    merged_layout,
    takes_others,
    without_parts,
)
from snaploom.plugins.discovery.names import column_words, words_of
from snaploom.plugins.discovery.paths import COMPRESSED, Kind
from snaploom.plugins.discovery.profiles import (
    DatabaseAddress,
    DatabaseTable,
    ForeignKey,
    ReadTable,
    SourceProfile,
)
from snaploom.plugins.discovery.scratch import FILE, OutOfTime, Scratch
from snaploom.plugins.discovery.tablecontents import profile_table_folder
from snaploom.plugins.discovery.textfiles import GUESSED_HEADER, NO_HEADER, profile_text
from snaploom.plugins.discovery.textforms import is_header, note_of_text

# Files that are parts of one table, though names differ in a word: orders_north, orders_south.

_FEWEST_COLUMNS = 4
"""Columns from which two tables do not have the same ones by chance: lists have code and name."""
_BOUNDARY = re.compile(r"[_\-. /]")
_CODE = re.compile(r"(.*/)?[A-Za-z]{2,3}[.][^/]*")
_FEWEST_CODES, _COMMON_COLUMNS, _MOST_WITH_KEY, _MOST_KEPT_TWICE = 8, 0.7, 0.9, 0.001
"""Files called by two or three letters, as of countries, from which these are no tables' names;
shares of their columns that each has, as JSON leaves out what is NULL, of those that have the key,
and of the values of it that may stand in two, by fault."""


def siblings_of(profiles: Iterable[SourceProfile]) -> tuple[tuple[Layout, tuple[str, ...]], ...]:
    """Layouts of files that are parts of one table, each with the names of the sources it joins."""
    groups: dict[object, list[tuple[Layout, SourceProfile]]] = defaultdict(list)
    for profile in profiles:
        if isinstance(profile.origin, Layout) and len(profile.columns) >= _FEWEST_COLUMNS:
            columns = tuple(column.name.casefold() for column in profile.columns)
            file = profile.origin.files[0]
            options = tuple(sorted(profile.format_options.items()))
            coded = _CODE.fullmatch(file.key) if not profile.origin.table else None
            names: object = (coded[1],) if coded else columns
            key = (file.place.uri, profile.origin.data_format, names, options)
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


def with_guesses_of_series(profiles: Sequence[SourceProfile]) -> Iterator[SourceProfile]:
    """Profiles, with a guess where sources of the same columns may be one.

    Their names differ in a year and more, as the name of a month that is not known here or `H1`,
    or only in numbers, months and forms of dates: `sales_1Q24`, `sales_v2`, sheets of months.
    """
    groups: dict[object, list[str]] = defaultdict(list)
    keys = {profile.name: _series_of(profile) for profile in profiles}
    for name, key in keys.items():
        groups[key].append(name)
    for profile in profiles:
        layout, same = profile.origin, groups[keys[profile.name]]
        if not isinstance(layout, Layout) or len(same) == 1 or profile.name != same[0]:
            yield profile
            continue
        shown = f"{', '.join(same[:3])}{', ...' * (len(same) > 3)}"
        count = f"{len(same)} sources with the same columns, whose names differ"
        guess = (
            Guess(f"dates in names of {shown}", "the year", ("months or other parts of it",),
                  f"{count} beside the year", "write dates as 2024-05 or 2024Q2 in all names")
            if _is_of_years(layout) else
            Guess(f"rows of {shown}", "of sources of their own", ("of one",),
                  f"{count} in numbers, months or forms of dates only",
                  "write dates as 2024-05-31, and numbers as `part-1`, in all names")
        )  # fmt: skip
        yield replace(profile, origin=replace(layout, guess=layout.guess or guess))


def _is_of_years(layout: Layout) -> bool:
    return layout.is_dated and layout.unit is Unit.YEAR


def _series_of(profile: SourceProfile) -> object:
    """Common properties of sources that may be parts of a series."""
    layout = profile.origin
    if not isinstance(layout, Layout):
        return profile.name
    columns = tuple(column.name.casefold() for column in profile.columns)
    of_all = layout.files[0].place.uri, layout.data_format, columns
    if _is_of_years(layout):
        return *of_all, tuple(piece.kind for piece in layout.pieces), layout.snapshots
    texts = [piece.text for piece in layout.pieces if piece.kind is Kind.TEXT]
    table = layout.table.name if layout.table else ""
    return *of_all, _VARYING.sub("", f"{''.join(texts)} {table}")


_VARYING = re.compile(rf"(?<![^\W\d_]){MONTH_NAME}(?![^\W\d_])|[\W\d_]")
"""Letters that vary in names of one series, and those between words."""


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
    is_suffix = bool(before) and not before.endswith("/") and not words_of(behind.partition(".")[0])
    are_codes = len(texts) >= _FEWEST_CODES and all(map(_CODE.fullmatch, texts))
    return (differing[0], before, behind) if is_folder or is_suffix or are_codes else None


def _common_start(texts: Sequence[str]) -> str:
    letters = takewhile(lambda row: len(set(row)) == 1, zip(*texts, strict=False))
    return "".join(row[0] for row in letters)


def _are_parts(profiles: Sequence[SourceProfile]) -> bool:
    """Whether all have the same key, and no two a value of it in common, but for a few of many."""
    are_many = len(profiles) >= _FEWEST_CODES
    if not are_many and any(len(profile.snapshot) < FEWEST_ROWS for profile in profiles):
        return False
    names = [{column.name.casefold() for column in profile.columns} for profile in profiles]
    if min(map(len, names)) < _COMMON_COLUMNS * len(set().union(*names)):
        return False
    keys = Counter(key.columns[0] for each in profiles for key in single_keys(each)[:1])
    ((key, times),) = keys.most_common(1) or [("", 0)]
    least = _MOST_WITH_KEY * len(profiles) if are_many else len(profiles)
    if times < least or not column_words(key, profiles[0].prefix).has_id:
        return False
    columns = [c.values for p in profiles for c in p.columns if c.name == key and c.may_be_key]
    together = " UNION ALL ".join(f"SELECT CAST(k0 AS VARCHAR) AS k FROM {c.keys}" for c in columns)
    again = columns[0].rows.scratch.number(f"SELECT count(*) - count(DISTINCT k) FROM ({together})")
    return again <= _MOST_KEPT_TWICE * are_many * sum(column.distinct for column in columns)


# Files that are tables of their own, though names differ in a number: agg_3_sales, agg_4_sales.

_MOST_TABLES = 50


def _are_tables(profile: SourceProfile) -> bool:
    """Whether files of different numbers have other references, or few columns in common."""
    layout, rows = profile.origin, profile.snapshot.rows
    if not isinstance(layout, Layout) or layout.table:
        return False
    if layout.data_format == "csv" and profile.has_one_schema:
        return False
    places = [n for n, piece in enumerate(layout.pieces) if piece.kind is Kind.ANY]
    numbers = {
        file.uri: tuple(values[n] for n in places)
        for file, values in zip(layout.files, layout.values, strict=True)
    }
    if not 1 < len(set(numbers.values())) <= _MOST_TABLES:
        return False
    columns = [column for column in profile.columns if column.values.columns]
    given = ", ".join(f"count({column.values.columns[0]})" for column in columns)
    counted = f"SELECT {FILE}, count(*), {given} FROM {rows.table} GROUP BY {FILE}"
    some: dict[tuple[str, ...], set[str]] = defaultdict(set)
    full: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for file, total, *counts in rows.scratch.all(counted) if columns else ():
        number = numbers[rows.files[int(str(file))]]
        some[number] |= {c.name for c, count in zip(columns, counts, strict=True) if count}
        full[number] |= {c.name for c, count in zip(columns, counts, strict=True) if count == total}
    references = {c.name for c in columns if column_words(c.name, profile.prefix).has_id}
    return any(
        2 * len(some[one] & some[other]) < len(some[one] | some[other])
        or references & ((full[one] - some[other]) | (full[other] - some[one]))
        for one, other in combinations(some, 2)
    )


# Reads a bounded part of each source, and keeps its profile.


def profiles_of(
    layouts: Sequence[Layout],
    meter: typedfiles.Meter,
    tables: Sequence[TableFolder] = (),
    databases: Sequence[tuple[DatabaseAddress, Sequence[ReadTable]]] = (),
) -> tuple[tuple[SourceProfile, ...], tuple[LeftOut, ...]]:
    """Profiles of sources, and those that could not be read, with the reason."""
    taken = {layout.name.casefold() for layout in layouts}
    budget = min(SOURCE_BYTES, max(LEAST_BYTES, ALL_BYTES // max(1, len(layouts) + len(tables))))
    tables_of_files = {
        (layout.files[-1].uri, layout.table.name): layout.name for layout in layouts if layout.table
    }
    look = _Look(Scratch(), meter, budget, tables_of_files)
    for layout in layouts:
        look.keep(_place(layout), layout.data_format, partial(look.files, layout))
    for profile in filter(_are_tables, tuple(look.profiles)):
        assert isinstance(profile.origin, Layout)
        look.profiles.remove(profile)
        for layout in without_parts(profile.origin):
            named = replace(layout, name=_free(taken, layout.name))
            look.keep(_place(named), named.data_format, partial(look.files, named))
    for layout, parts in siblings_of(look.profiles):
        taken.difference_update(name.casefold() for name in parts)
        look.profiles = [profile for profile in look.profiles if profile.name not in parts]
        named = replace(layout, name=_free(taken, layout.name))
        look.budget = min(SOURCE_BYTES, len(parts) * budget)
        look.keep(_place(layout), layout.data_format, partial(look.files, named))
    look.budget = budget
    for table in tables:
        folder = table.uri.rpartition("/")[0].rpartition("/")[2]
        name = _free(
            taken, table.name, f"{folder}_{table.name}", f"{table.name}_{table.data_format}"
        )
        work = partial(look.table, replace(table, name=name))
        look.keep(table.uri, table.data_format, work)
    for address, read in databases:
        times = Counter(each.name.casefold() for each in read)
        names = {
            each.reference: _free(taken, *(
                [each.name] if times[each.name.casefold()] == 1 else []
            ), "_".join(words_of(each.reference)))
            for each in read
        }  # fmt: skip
        for each in read:
            work = partial(_of_database, look.scratch, address, each, names)
            look.keep(f"{address.uri} {each.reference}", "a table", work)
    known = map(with_snapshot_column, _with_known_parents(look.profiles))
    return tuple(with_guesses_of_series(tuple(known))), tuple(look.left_out)


class _Look:
    """Sources as they are read, one after the other."""

    def __init__(
        self,
        scratch: Scratch,
        meter: typedfiles.Meter,
        budget: int,
        tables: Mapping[tuple[str, str], str],
    ) -> None:
        self.scratch = scratch
        self.meter = meter
        self.budget = budget
        self.tables = tables
        self.profiles: list[SourceProfile] = []
        self.left_out: list[LeftOut] = []

    def files(self, layout: Layout, budget: int) -> SourceProfile:
        """The profile of a source of files, of which so many bytes are read."""
        parts = _parts(layout.files, layout.times, layout.data_format, budget)
        if layout.data_format not in typedfiles.TYPED_FORMATS:
            return profile_text(layout, parts, self.scratch, self.meter, 2 * budget)
        try:
            profile = typedfiles.profile_typed(layout.name, layout, parts, self.scratch, self.meter)
        except CellError as error:
            assert layout.table is not None  # only workbooks have cells
            options = {**layout.table.options, "nullValue": error.nulls}
            return self.files(replace(layout, table=replace(layout.table, options=options)), budget)
        return profile if layout.table is None else self._of_table(profile, layout, layout.table)

    def _of_table(self, profile: SourceProfile, layout: Layout, table: FileTable) -> SourceProfile:
        """The profile of a table of files, with what these declare."""
        names = {name: each for (uri, name), each in self.tables.items()
                 if uri == layout.files[-1].uri}  # fmt: skip
        is_numbered = table.options.get("header") == "false"
        is_guess = bool(table.head) and is_header(table.head[0], table.head[1:])[1]
        rows = profile.snapshot.rows.table
        null = table.options.get("nullValue", "")
        notes = [null and f"a guess: {null} in cells is no value (nullValue)"]
        notes += [
            note_of_text(self.scratch, rows, column.values.columns[0], column.name)
            for column in profile.columns
            if column.type == STRING and column.values.columns
        ]
        profile = replace(
            profile,
            format_options=table.options,
            notes=(NO_HEADER,) * is_numbered
            + (GUESSED_HEADER,) * is_guess
            + (*filter(None, notes),),
        )
        return _with_keys(profile, table, names)

    def table(self, table: TableFolder, budget: int) -> SourceProfile:
        """The profile of a table of Delta or Iceberg."""
        return profile_table_folder(table, self.scratch, self.meter, budget)

    def keep(self, place: str, data_format: str, work: Callable[[int], SourceProfile]) -> None:
        """Add the profile that some work gives, or why there is none.

        What takes too long is done again with less.
        """
        try:
            try:
                with self.scratch.within(SECONDS):
                    profile = work(self.budget)
            except OutOfTime:
                with self.scratch.within(SECONDS):
                    profile = work(self.budget // 16)
            refuse_undeclarable(profile)
            self.profiles.append(profile)
        except NotRecognised as error:
            self.left_out.append(LeftOut(place, str(error)))
        except OutOfTime:
            self.left_out.append(LeftOut(place, f"its values take more than {SECONDS} seconds"))
        except RecursionError:
            self.left_out.append(LeftOut(place, "values are nested too deeply"))
        except (*FAULTS, zlib.error, duckdb.Error) as error:
            first = str(error).split("\n", 1)[0][:200]
            self.left_out.append(LeftOut(place, f"not readable as {data_format}: {first}"))
        except StorageError as error:
            self.left_out.append(LeftOut(place, error.message))


def _parts(
    files: Sequence[FoundFile], times: Sequence[datetime | None], data_format: str, budget: int
) -> list[typedfiles.Part]:
    """The files of a source, or so many of them at equal distances that the bytes are enough.

    Of a single file, and of two, only a part may be read.
    """
    numbers = {time: number for number, time in enumerate(dict.fromkeys(times), start=1)}
    dated = list(zip(files, times, strict=True))
    packed = tuple(f".{ending}" for ending in COMPRESSED)
    stored = sum(f.size * (PACKED if f.key.lower().endswith(packed) else 1) for f in files)
    share = min(1.0, budget / max(1, stored), MOST_PARTS / max(1, len(files)))
    chosen = typedfiles.spread(dated, share) if share < 1 else dated
    # Of a few files each has its part; of more, those are read as a whole that are not the largest.
    limit = budget if share == 1 else (2 if len(chosen) > 2 else 1) * budget // len(chosen)
    return [typedfiles.Part(numbers[time], file, limit, data_format) for file, time in chosen]


def _free(taken: set[str], *wanted: str) -> str:
    options = (*wanted, *(f"{wanted[0]}_{number}" for number in range(2, len(taken) + 3)))
    name = next(option for option in options if option.casefold() not in taken)
    taken.add(name.casefold())
    return name


def _of_database(
    scratch: Scratch, address: DatabaseAddress, table: ReadTable, names: Mapping[str, str], _: int
) -> SourceProfile:
    """The profile of a table, whose foreign keys name profiles."""
    origin = DatabaseTable(address, table.reference)
    profile = typedfiles.profile_rows(names[table.reference], origin, table, scratch)
    return _with_keys(profile, table, names)


def _with_keys(
    profile: SourceProfile, table: FileTable | ReadTable, names: Mapping[str, str]
) -> SourceProfile:
    keys = (
        ForeignKey(key.name, key.columns, names[key.parent], key.parent_columns)
        for key in table.foreign_keys
        if key.parent in names
    )
    return replace(profile, primary_key=table.primary_key, foreign_keys=tuple(keys))


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
    folded = [name.casefold() for name in names]
    if alike := [name for name, key in zip(names, folded, strict=True) if folded.count(key) > 1]:
        why = f"columns whose names are equal but for capitals: {', '.join(alike[:4])}"
        raise NotRecognised(f"{why}: write one of them otherwise, or the same in all files")
    origin = profile.origin
    uri = origin.files[0].uri if isinstance(origin, Layout) else ""
    if len(uri) > LONGEST_URI:
        raise NotRecognised(f"paths longer than {LONGEST_URI:,} characters")


def _place(layout: Layout) -> str:
    first = layout.files[-1].uri
    more = len(layout.files) - 1
    return first if not more else f"{first} and {more} more"
