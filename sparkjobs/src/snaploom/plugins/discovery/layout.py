"""Sources by the names of their files: which files are one table."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf
from typing import TypeVar

from snaploom.files.measured import FileTable
from snaploom.plugins.discovery.dates import DateForm, Orders, Unit, dates_in, exceptions, fitting
from snaploom.plugins.discovery.foundfiles import Ask, FoundFile, Guess, LeftOut, Question, nobody
from snaploom.plugins.discovery.paths import (
    COMPRESSED,
    DATA_ENDINGS,
    PART_WORDS,
    UNIQUE,
    WEEKDAYS,
    Kind,
    ParsedPath,
    Piece,
    date_parts,
    date_piece,
    fit_weekdays,
    format_of,
    guess_of_names,
    may_be_days,
    parse_path,
    unit_of,
)
from snaploom.sources.files.globs import escape_glob

# Tables of Iceberg and Delta, as a listing shows them: folders with a history of their own.

_DELTA, _ICEBERG = "/_delta_log/", "/metadata/"
_OURS = "snaploom.json"


@dataclass(frozen=True)
class TableFolder:
    """A table with files of its own."""

    name: str
    uri: str
    """Of its folder, without a final `/`."""
    data_format: str
    """`iceberg` or `delta`."""
    files: tuple[FoundFile, ...]

    def below(self, folder: str) -> dict[str, FoundFile]:
        """Its files below one of its folders, by their path from there on."""
        start = f"{self.uri}/{folder}"
        return {
            file.uri.removeprefix(start): file for file in self.files if file.uri.startswith(start)
        }


def published_folders(files: Iterable[FoundFile]) -> tuple[str, ...]:
    """The folders that Snaploom itself has published into, each with a final `/`."""
    return tuple(
        sorted({f.uri.removesuffix(_OURS) for f in files if f"/{f.key}".endswith(f"/{_OURS}")})
    )


def table_folders(files: Iterable[FoundFile]) -> tuple[TableFolder, ...]:
    """The tables that files belong to, by their place."""
    everything = list(files)
    published = published_folders(everything)
    listed = [file for file in everything if not file.uri.startswith(published)]
    formats: dict[str, str] = {}
    for file in listed:
        folder, _, rest = file.uri.partition(_DELTA)
        if rest.endswith((".json", ".parquet")):
            formats[folder] = "delta"
        folder, _, rest = file.uri.rpartition(_ICEBERG)
        if folder and rest.endswith(".metadata.json"):
            formats.setdefault(folder, "iceberg")
    outer = [uri for uri in formats if not any(uri.startswith(f"{other}/") for other in formats)]
    return tuple(
        TableFolder(
            name=uri.rpartition("/")[2],
            uri=uri,
            data_format=formats[uri],
            files=tuple(file for file in listed if file.uri.startswith(f"{uri}/")),
        )
        for uri in sorted(outer)
    )


# Sources by the names of their files: which files are one table, and where dates stand in them.

OTHER_ENDINGS = {
    "crc": "checksums of Hadoop", "md": "text for people",
    "zip": "an archive, which Spark does not open: unpack it",
    "xls": "a workbook of Excel 2003: save it as .xlsx",
}  # fmt: skip
GENERIC_STEMS = frozenset({
    "", "data", "part", "export", "file", "extract", "dump", "output", "result", "batch", "full",
    "delta", "inc", "incremental", "snapshot", "all", "daten", "records", "rows", "chunk", "run",
})  # fmt: skip
"""Names of files that show nothing about their content."""
VARIANT = "file_variant"
"""Name of the column with the word in which names of files of one table differ."""
_T = TypeVar("_T")
_Groups = dict[tuple[str, str, tuple[Piece, ...]], list[tuple[FoundFile, ParsedPath]]]
_CONSUMED = frozenset({"export", "extract", "dump", "snapshot"})


@dataclass(frozen=True)
class Layout:
    """The files of one source."""

    name: str
    """Of the table, as its files or folder are called."""
    data_format: str
    """By the ending of its files."""
    pieces: tuple[Piece, ...]
    files: tuple[FoundFile, ...]
    """By time, then by name."""
    values: tuple[tuple[str, ...], ...]
    """Of each file the text of each piece."""
    times: tuple[datetime | None, ...]
    guess: Guess | None = None
    """About its dates, where the names do not prove which they are."""
    table: FileTable | None = None
    """Of several that its files have, or their only one; None for other formats."""

    @property
    def is_dated(self) -> bool:
        """Whether the names of its files have dates."""
        return self.times[0] is not None

    @property
    def snapshots(self) -> tuple[datetime, ...]:
        """Its times, ascending, each once."""
        return tuple(sorted({time for time in self.times if time is not None}))

    @property
    def unit(self) -> Unit:
        """Precision of its times."""
        return unit_of(self.pieces)


def layouts_of(
    files: Iterable[FoundFile], ask: Ask = nobody
) -> tuple[tuple[Layout, ...], tuple[LeftOut, ...]]:
    """The sources that files are, and the files that are none; those of tables are neither.

    `ask` is asked where names leave open which number is the day.
    """
    listed = list(files)
    left_out: list[LeftOut] = []
    published = published_folders(listed)
    tables = tuple(f"{table.uri}/" for table in table_folders(listed))
    data: list[FoundFile] = []
    for file in listed:
        if file.uri.startswith((*tables, *published)):
            continue
        reason = _no_data(file)
        if reason is None:
            data.append(file)
        elif reason:
            left_out.append(LeftOut(file.uri, reason))
    left_out.extend(LeftOut(uri, "published by Snaploom itself") for uri in published)
    series = list(_series(data, {}, None))
    _decide(series, ask)
    groups: _Groups = defaultdict(list)
    guesses: dict[str, Guess] = {}
    for one in series:
        for file, parsed in one.members:
            decided = _decided(parsed, one.forms)
            groups[*one.key, decided.pieces].append((file, decided))
        if one.guess is not None:
            guesses.update((file.uri, one.guess) for file, _ in one.members)
    named = with_names([_layout(key[1], members) for key, members in _without_lone_parts(groups)])
    found = (
        _with_guess(
            one,
            next((guesses[f.uri] for f in one.files if f.uri in guesses), None)
            or guess_of_names(one.pieces, one.values, one.times),
        )
        for one in named
    )
    return tuple(found), tuple(left_out)


def _decided(path: ParsedPath, forms: Mapping[int, Sequence[DateForm]]) -> ParsedPath:
    found: list[tuple[Piece, str]] = []
    for index, (piece, value) in enumerate(zip(path.pieces, path.values, strict=True)):
        if piece.orders and "/" in forms[index][0].name:
            found += date_parts(piece, forms[index][0], value)
        else:
            form = forms[index][0] if piece.orders else piece.form
            found.append((Piece(piece.kind, piece.text, form), value))
    pieces, values = zip(*found, strict=True)
    return ParsedPath(pieces, values)


def _with_guess(layout: Layout, guess: Guess | None) -> Layout:
    if guess is None:
        return layout
    return replace(layout, guess=replace(guess, what=f"{guess.what} of {layout.name}"))


# Dates of a series of files, which decide together.

CHANGE_ORDER = (
    "write `timePattern: {}` in sources.yaml, and begin the interval in output.yaml accordingly"
)
"""Change of an order of day and month, with the pattern of another one."""
ORDER_TAKEN = "no day is above 12: the order with the fewest gaps between days, else the day first"
"""Reason for an order that nothing proves."""


@dataclass
class _Series:
    """Files whose paths have the same pieces."""

    key: tuple[str, str]
    """Of their place, and their format."""
    members: list[tuple[FoundFile, ParsedPath]]
    forms: dict[int, tuple[DateForm, ...]]
    """That each date fits, by the place of its piece, likeliest first."""
    guess: Guess | None

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return self.members[0][1].pieces

    def texts(self, index: int) -> list[str]:
        return sorted({parsed.values[index] for _, parsed in self.members})


def _series(
    files: Iterable[FoundFile], no_dates: Mapping[Orders, Kind], guess: Guess | None
) -> Iterator[_Series]:
    """Divide files into series; what is no date in all files of one is none in any."""
    groups: _Groups = defaultdict(list)
    for file in files:
        parsed = parse_path(file.key, no_dates)
        groups[file.place.uri, format_of(file) or "", parsed.pieces].append((file, parsed))
    for (place, data_format, pieces), members in groups.items():
        one = _Series((place, data_format), members, {}, guess)
        others: dict[Orders, Kind] = {}
        for index, piece in enumerate(pieces):
            if not piece.orders:
                continue
            texts = one.texts(index)
            one.forms[index] = fitting(piece.orders, texts)
            period = _PERIOD.search("".join(each.text for each in pieces))
            if one.forms[index] and one.forms[index][0].may_be_parts and period:
                others[piece.orders] = Kind.ANY
                one.guess = _without_dates(f"numbers beside the year are of `{period[0]}`")
                continue
            if one.forms[index] and one.forms[index][0].may_be_parts and "/" not in texts[0]:
                one.guess = Guess(
                    "dates in names", _option(one.forms[index][0], texts), ("numbers of parts",),
                    "a year, and numbers up to 12", "write months with two digits, or `part-1`",
                )  # fmt: skip
            if not one.forms[index]:
                odd = exceptions(piece.orders, texts)
                is_number = odd or re.fullmatch("[0-9]+([^0-9][0-9]+){2}", texts[0])
                is_text = "/" in texts[0] or not is_number
                others[piece.orders] = Kind.TEXT if is_text else Kind.ANY
                one.guess = _without_dates(odd) if odd else one.guess
                continue
            number = replace(piece, kind=Kind.ANY, orders=())
            like = groups.get((place, data_format, (*pieces[:index], number, *pieces[index + 1 :])))
            odd = next((parsed.values[index] for _, parsed in like or ()
                        if len(parsed.values[index]) == len(texts[0])), "")  # fmt: skip
            if odd and texts[0].isdecimal():  # 1960 beside 1970, or 0999 beside 2000
                others[piece.orders] = Kind.ANY
                one.guess = _without_dates(f"{odd} is no date, as {len(texts):,} others are")
        if not others and not fit_weekdays([path for _, path in members], one.forms):
            others = {WEEKDAYS: Kind.TEXT}
        units = {forms[0].unit for forms in one.forms.values() if forms}
        if not others and units == {Unit.YEAR} and may_be_days([path for _, path in members]):
            others = {piece.orders: Kind.ANY for piece in pieces if piece.orders}
            why = "the numbers beside the year may be months, weeks, days or parts"
            one.guess = _without_dates(why)
        if others:
            yield from _series((f for f, _ in members), {**no_dates, **others}, one.guess)
        else:
            yield one


_PERIOD = re.compile(
    "quart|trimest|kwarta|half|halb|semest|term|week|woche|settimana|semana|semaine", re.IGNORECASE
)
"""Beginnings of words for periods that are no months."""


def _without_dates(evidence: str) -> Guess:
    return Guess("dates in names", "none, all files are read at the run", (), evidence,
                 "write dates as 2024-05-31 in all names, or move other files away")  # fmt: skip


def _decide(series: Iterable[_Series], ask: Ask) -> None:
    """Put the form first that is taken for each date, and note where that is a guess.

    Dates of the same characters have the same order everywhere, where that fits: the one that some
    files prove, else what a person answers, else that of the most files.
    """
    by_orders: dict[Orders, list[tuple[_Series, int]]] = defaultdict(list)
    for one in series:
        for index in one.forms:
            by_orders[one.pieces[index].orders].append((one, index))
    for orders, members in by_orders.items():
        unclear = [each for each in members if len(each[0].forms[each[1]]) > 1]
        if not unclear:
            continue
        first, index = max(unclear, key=lambda each: len(each[0].texts(each[1])))
        forms = first.forms[index]
        places = {_place(orders, form) for form in forms}
        proofs = {
            place: one.members[0][0].key for one, at in members
            if len(one.forms[at]) == 1 and (place := _place(orders, one.forms[at][0])) in places
        }  # fmt: skip
        chosen, why, answer = _place(orders, forms[0]), ORDER_TAKEN, None
        if len(proofs) == 1:
            ((chosen, name),) = proofs.items()
            why = f"as in {name}"
        else:
            options = tuple(_option(form, first.texts(index)) for form in forms)
            example = first.members[0][0].key
            text = f"In which order are year, month and day in names such as {example}?"
            (answer,) = ask([Question(text, options, 0, inf)])
            chosen = chosen if answer is None else _place(orders, forms[answer])
        for one, index in unclear:
            found = sorted(one.forms[index], key=lambda form: _place(orders, form) != chosen)
            one.forms[index] = tuple(found)
            if answer is None:
                texts = [_option(form, one.texts(index)) for form in found]
                change = CHANGE_ORDER.format(found[1].name)
                one.guess = Guess("dates in names", texts[0], tuple(texts[1:]), why, change)


def _option(form: DateForm, texts: Sequence[str]) -> str:
    days = sorted(found for text in texts if (found := form.instant(text)) is not None)
    return f"{form.name}, {days[0]:%Y-%m-%d} to {days[-1]:%Y-%m-%d}"


def _place(orders: Orders, form: DateForm) -> int:
    """Return the place of a form among orders of year, month and day, with zeros or without."""
    return next(i for i, one in enumerate(one for g in orders for one in g) if form in one)


def _no_data(file: FoundFile) -> str | None:
    """Return why a file belongs to no source; empty if that needs no message; None if it does."""
    *folders, name = file.key.split("/")
    if any(part.startswith(".") or (part.startswith("_") and "=" not in part)
           for part in (*folders, name)) or name.endswith("._COPYING_"):  # fmt: skip
        return (
            ""
            if name.startswith(("_SUCCESS", ".", "_committed", "_started"))
            else ("hidden: Spark passes over names that begin with _ or .")
        )
    if name.startswith("~$"):
        return "Excel's mark that the workbook is open"
    if format_of(file) is None:
        ending = name.rpartition(".")[2].lower() if "." in name else ""
        return OTHER_ENDINGS.get(ending, "not a format that its name or first bytes show")
    if file.size == 0:
        return "empty"
    if any(":" in part for part in (*folders, name)):
        return "its name has a colon, which Hadoop cannot list"
    return None


def _without_lone_parts(
    groups: _Groups,
) -> list[tuple[tuple[str, str, tuple[Piece, ...]], list[tuple[FoundFile, ParsedPath]]]]:
    """Groups in which a number that all files share is text again, as in `sales_2_north`.

    One that is the day of a month, or the hour of a day, is a part of the date. Packed files are of
    the source of plain ones, unless one is there in both ways.
    """
    found: _Groups = defaultdict(list)
    for (place, data_format, pieces), members in groups.items():
        fixed = {
            index
            for index, piece in enumerate(pieces)
            if piece.kind in (Kind.ANY, Kind.PACKED, Kind.WEEKDAY)
            and not _is_always_any(pieces, members[0][1].values, index)
            and len({parsed.values[index] for _, parsed in members}) == 1
        }
        if len({parsed.values[:-1] for _, parsed in members}) < len(members):
            fixed.add(len(pieces) - 1)
        found_part = date_piece([parsed for _, parsed in members])
        for file, parsed in members:
            others = {index: Piece(Kind.TEXT, parsed.values[index]) for index in fixed}
            if found_part is not None:
                others[found_part[0]] = Piece(Kind.PART_OF_DATE, found_part[1])
            plain = [others.get(index, piece) for index, piece in enumerate(pieces)]
            joined = _joined(plain, parsed.values)
            found[place, data_format, joined.pieces].append((file, joined))
    return sorted(found.items(), key=lambda item: item[1][0][0].uri)


def _is_always_any(pieces: Sequence[Piece], values: Sequence[str], index: int) -> bool:
    """Whether a piece is unique by its form, or behind `part-`, as Spark names files."""
    before = pieces[index - 1].text if index else ""
    return before.endswith(("part-", "part_")) or UNIQUE.fullmatch(values[index]) is not None


def _joined(pieces: Sequence[Piece], values: Sequence[str]) -> ParsedPath:
    kept: list[Piece] = []
    texts: list[str] = []
    for piece, value in zip(pieces, values, strict=True):
        if piece.kind is Kind.TEXT and kept and kept[-1].kind is Kind.TEXT:
            kept[-1] = Piece(Kind.TEXT, kept[-1].text + value)
            texts[-1] += value
        else:
            kept.append(piece)
            texts.append(value)
    return ParsedPath(tuple(kept), tuple(texts))


def _layout(data_format: str, members: Sequence[tuple[FoundFile, ParsedPath]]) -> Layout:
    pieces = members[0][1].pieces
    times = [parsed.instant for _, parsed in members]
    if any(time is None for time in times):
        times = [None] * len(times)
    order = sorted(range(len(members)), key=lambda i: (times[i] or datetime.min, members[i][0].uri))
    return Layout(
        name=_table_name(pieces, members[0][0].place.uri),
        data_format=data_format,
        pieces=pieces,
        files=tuple(members[i][0] for i in order),
        values=tuple(members[i][1].values for i in order),
        times=tuple(times[i] for i in order),
    )


def without_parts(layout: Layout) -> tuple[Layout, ...]:
    """The files of each number that was taken for that of a part, as sources of their own."""
    groups: dict[tuple[Piece, ...], list[tuple[FoundFile, ParsedPath]]] = defaultdict(list)
    for file, values in zip(layout.files, layout.values, strict=True):
        pieces = [
            Piece(Kind.TEXT, value) if piece.kind is Kind.ANY else piece
            for piece, value in zip(layout.pieces, values, strict=True)
        ]
        joined = _joined(pieces, values)
        groups[joined.pieces].append((file, joined))
    return tuple(_layout(layout.data_format, members) for members in groups.values())


def _table_name(pieces: Sequence[Piece], place: str) -> str:
    marks = {Kind.PACKED: ""}
    path = "".join(p.text if p.kind is Kind.TEXT else marks.get(p.kind, "\0") for p in pieces)
    path = re.sub(rf"[-_. ](?:{'|'.join(PART_WORDS)})[-_]?\0", "\0", path)
    *folders, name = path.split("/")
    stem = _without_endings(name)
    has_folder = any(re.search(r"[^\W\d]{2}", folder) and "=" not in folder for folder in folders)
    for text in (stem, *reversed(folders), *reversed(place.rstrip("/").split("/"))):
        if "=" in text:
            continue
        words = [word for word in re.split(r"[\0\s_.\-]+", text) if word]
        kept = [word for word in words if word.lower() not in _CONSUMED] or words
        if text is stem and has_folder and all(len(w) == 1 or w.isdigit() for w in words):
            continue  # a.parquet in a folder shows nothing either
        if text == stem == "part":
            return text  # parts of something, unless a number makes it one of many
        if kept and not all(word.lower() in GENERIC_STEMS or word.isdigit() for word in kept):
            return "_".join(kept)
    return "table"


def _without_endings(name: str) -> str:
    while "." in name and name.rpartition(".")[2].lower() in (*DATA_ENDINGS, *COMPRESSED):
        name = name.rpartition(".")[0]
    return name


def with_names(layouts: Sequence[Layout]) -> tuple[Layout, ...]:
    """Sources with names of their own: of several with one name each gets its folder, or a number.

    None of them keeps the name, as if the others were something else.
    """
    taken: set[str] = set()
    named: list[Layout] = []
    folders: dict[str, set[str]] = defaultdict(set)
    for layout in layouts:
        folders[layout.name.casefold()].add(folder_name(layout))
    for layout in layouts:
        folder = folder_name(layout)
        options = [layout.name]
        if folder:
            is_one = len(folders[layout.name.casefold()]) == 1
            options.insert(1 if is_one else 0, f"{folder}_{layout.name}")
        options.append(f"{layout.name}_{layout.data_format}")
        options.extend(f"{layout.name}_{number}" for number in range(2, len(layouts) + 2))
        name = next(option for option in options if option.lower() not in taken)
        taken.add(name.lower())
        named.append(replace(layout, name=name))
    return tuple(named)


def folder_name(layout: Layout) -> str:
    """The folder of a source's files, as names have it; empty where it is a date or a value."""
    key = layout.files[0].key.split("/")
    folder = re.sub(r"[^A-Za-z0-9_]+", "_", key[-2] if len(key) > 1 else "")
    return "" if dates_in(folder) or "=" in "".join(key[-2:-1]) else folder


def globs_of(layout: Layout, others: Iterable[FoundFile]) -> tuple[str, ...]:
    """Hadoop globs of a source's files, below its place, and of no others' where possible.

    There are several where some files are packed. `others` has every file that was listed in its
    place.
    """
    everything = list(others)
    wide, exact = _globs(layout, exact=False), _globs(layout, exact=True)
    return exact if _foreign(wide, layout, everything) else wide


def takes_others(layout: Layout, others: Iterable[FoundFile]) -> bool:
    """Whether a glob of a source's files matches other ones as well.

    `others` has every file that was listed in its place.
    """
    everything = list(others)
    return _foreign(globs_of(layout, everything), layout, everything)


def _foreign(globs: Iterable[str], layout: Layout, others: Iterable[FoundFile]) -> bool:
    mine = {file.uri for file in layout.files}
    all_steps = (re.findall(r"\\.|\[0-9\]|.", glob, re.DOTALL) for glob in globs)
    pattern = re.compile(
        "|".join("".join(_REGEX.get(s, re.escape(s[-1])) for s in steps) for steps in all_steps)
    )
    return any(file.uri not in mine and pattern.fullmatch(file.key) for file in others)


_REGEX = {"*": "[^/]*", "?": "[^/]", "[0-9]": "[0-9]"}
"""Matches of the steps of our globs; any other one is a letter, which may be escaped."""


def merged_layout(layouts: Sequence[Layout], place: int, before: str, behind: str) -> Layout:
    """Several sources as one, whose names differ in a word, which becomes a value.

    `place` is that of the text in which they differ; `before` and `behind` surround the word in it.
    """

    def split(pieces: Sequence[_T], instead: Sequence[_T]) -> tuple[_T, ...]:
        return (*pieces[:place], *instead, *pieces[place + 1 :])

    members: list[tuple[FoundFile, ParsedPath]] = []
    middle = (Piece(Kind.TEXT, before), Piece(Kind.VALUE, VARIANT), Piece(Kind.TEXT, behind))
    for layout in layouts:
        for file, values in zip(layout.files, layout.values, strict=True):
            word = values[place][len(before) : len(values[place]) - len(behind)]
            pieces = split(layout.pieces, [piece for piece in middle if piece.text])
            texts = split(values, [text for text in (before, word, behind) if text])
            members.append((file, ParsedPath(pieces, texts)))
    merged = _layout(layouts[0].data_format, members)
    return replace(merged, guess=layouts[0].guess, table=layouts[0].table)


def _globs(layout: Layout, exact: bool) -> tuple[str, ...]:
    steps: list[str] = []
    endings = {""}
    for index, piece in enumerate(layout.pieces):
        if piece.kind is Kind.PACKED:
            endings = {values[index] for values in layout.values}
            continue
        if piece.kind is Kind.TEXT:
            steps.append(escape_glob(piece.text))
            continue
        texts = sorted({values[index] for values in layout.values})
        has_one_width = len({len(text) for text in texts}) == 1
        is_date = piece.kind in (Kind.DATE, Kind.PART_OF_DATE)
        if exact and is_date and all(text[0].isdecimal() for text in texts):
            steps.append("[0-9]*")
        elif piece.form is not None and has_one_width and (exact or piece.form.has_one_width):
            varies = str.isalnum if piece.form.has_names else str.isdecimal
            steps.append("".join("?" if varies(letter) else letter for letter in texts[0]))
        elif steps[-1:] not in (["*"], ["[0-9]*"]):
            steps.append("*")
    return tuple("".join(steps) + escape_glob(ending) for ending in sorted(endings))
