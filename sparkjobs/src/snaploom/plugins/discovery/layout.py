"""Sources by the names of their files: which files are one table."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import translate
from typing import TypeVar

from snaploom.plugins.discovery.dates import Unit, dates_in
from snaploom.plugins.discovery.foundfiles import FoundFile, LeftOut
from snaploom.plugins.discovery.paths import (
    COMPRESSED,
    DATA_ENDINGS,
    UNIQUE,
    Kind,
    ParsedPath,
    Piece,
    day_piece,
    format_of,
    parse_path,
    part_of,
)

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
    "xlsx": "a workbook: export its sheets as CSV",
    "xls": "a workbook: export its sheets as CSV",
    "sqlite": "a database that Spark takes whole numbers of for 32 bits: export its tables as CSV",
}  # fmt: skip
GENERIC_STEMS = frozenset({
    "", "data", "part", "export", "file", "extract", "dump", "output", "result", "batch", "full",
    "delta", "inc", "incremental", "snapshot", "all", "daten", "records", "rows", "chunk", "run",
})  # fmt: skip
"""Names of files that show nothing about their content."""
VARIANT = "file_variant"
"""Name of the column with the word in which names of files of one table differ."""
_T = TypeVar("_T")
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
        forms = [piece.form for piece in self.pieces if piece.form is not None]
        parts = [part_of(piece) for piece in self.pieces if piece.kind is Kind.PART_OF_DATE]
        if "hour" in parts:
            return Unit.HOUR
        return Unit(parts[-1]) if parts else forms[-1].unit if forms else Unit.DAY

    def files_at(self, time: datetime | None) -> tuple[FoundFile, ...]:
        """The files of one time."""
        return tuple(f for f, t in zip(self.files, self.times, strict=True) if t == time)


def layouts_of(files: Iterable[FoundFile]) -> tuple[tuple[Layout, ...], tuple[LeftOut, ...]]:
    """The sources that files are, and the files that are none; those of tables are neither."""
    listed = list(files)
    left_out: list[LeftOut] = []
    published = published_folders(listed)
    tables = tuple(f"{table.uri}/" for table in table_folders(listed))
    groups: dict[tuple[str, str, tuple[Piece, ...]], list[tuple[FoundFile, ParsedPath]]]
    groups = defaultdict(list)
    for file in listed:
        if file.uri.startswith((*tables, *published)):
            continue
        reason = _no_data(file)
        if reason is not None:
            if reason:
                left_out.append(LeftOut(file.uri, reason))
            continue
        parsed = parse_path(file.key)
        groups[file.place.uri, format_of(file.key) or "", parsed.pieces].append((file, parsed))
    left_out.extend(LeftOut(uri, "published by Snaploom itself") for uri in published)
    merged = _without_lone_parts(groups)
    return _named([_layout(key[1], members) for key, members in merged]), tuple(left_out)


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
    if format_of(name) is None:
        ending = name.rpartition(".")[2].lower() if "." in name else ""
        return OTHER_ENDINGS.get(ending, "not a format that can be recognised by its name")
    if file.size == 0:
        return "empty"
    if any(":" in part for part in (*folders, name)):
        return "its name has a colon, which Hadoop cannot list"
    return None


_Groups = dict[tuple[str, str, tuple[Piece, ...]], list[tuple[FoundFile, ParsedPath]]]


def _without_lone_parts(
    groups: _Groups,
) -> list[tuple[tuple[str, str, tuple[Piece, ...]], list[tuple[FoundFile, ParsedPath]]]]:
    """Groups in which a number that all files share is text again, as in `sales_2_north`.

    One that is the day of a month which folders name is a part of the date.
    """
    found: _Groups = defaultdict(list)
    for (place, data_format, pieces), members in groups.items():
        fixed = {
            index
            for index, piece in enumerate(pieces)
            if piece.kind is Kind.ANY
            and not _is_always_any(pieces, members[0][1].values, index)
            and len({parsed.values[index] for _, parsed in members}) == 1
        }
        day = day_piece([parsed for _, parsed in members])
        for file, parsed in members:
            others = {index: Piece(Kind.TEXT, parsed.values[index]) for index in fixed}
            if day is not None:
                others[day] = Piece(Kind.PART_OF_DATE, "day")
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


def _table_name(pieces: Sequence[Piece], place: str) -> str:
    marks = {
        Kind.TEXT: "",
        Kind.DATE: "\0",
        Kind.PART_OF_DATE: "\0",
        Kind.VALUE: "\0",
        Kind.ANY: "\0",
    }
    path = "".join(p.text if p.kind is Kind.TEXT else marks[p.kind] for p in pieces)
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


def _named(layouts: Sequence[Layout]) -> tuple[Layout, ...]:
    """Sources with names of their own: one that is taken gets its folder, then a number."""
    taken: set[str] = set()
    named: list[Layout] = []
    for layout in layouts:
        key = layout.files[0].key.split("/")
        folder = re.sub(r"[^A-Za-z0-9_]+", "_", key[-2] if len(key) > 1 else "")
        options = [layout.name]
        if folder and not any(True for _ in dates_in(folder)) and "=" not in key[-2]:
            options.append(f"{folder}_{layout.name}")
        options.append(f"{layout.name}_{layout.data_format}")
        options.extend(f"{layout.name}_{number}" for number in range(2, len(layouts) + 2))
        name = next(option for option in options if option.lower() not in taken)
        taken.add(name.lower())
        named.append(replace(layout, name=name))
    return tuple(named)


def last_date(layout: Layout) -> int | None:
    """The place of the piece that is the whole date of a file; None where there is none."""
    places = [index for index, piece in enumerate(layout.pieces) if piece.kind is Kind.DATE]
    return places[-1] if places else None


def glob_of(layout: Layout, others: Iterable[FoundFile]) -> str:
    """A Hadoop glob of a source's files, below its place, and of no others' where possible.

    `others` has every file that was listed in its place.
    """
    everything = list(others)
    return next(
        (glob for glob in (_glob(layout, exact=False), _glob(layout, exact=True))
         if not _foreign(glob, layout, everything)),
        _glob(layout, exact=True),
    )  # fmt: skip


def takes_others(layout: Layout, others: Iterable[FoundFile]) -> bool:
    """Whether a glob of a source's files matches other ones as well.

    `others` has every file that was listed in its place.
    """
    everything = list(others)
    return _foreign(glob_of(layout, everything), layout, everything)


def _foreign(glob: str, layout: Layout, others: Iterable[FoundFile]) -> bool:
    mine = {file.uri for file in layout.files}
    pattern = re.compile("/".join(translate(part) for part in glob.split("/")).replace(
        r"\z", "").replace(r"\Z", "") + r"\Z")  # fmt: skip
    return any(
        file.uri not in mine
        and pattern.match(file.key) is not None
        and file.key.count("/") == glob.count("/")
        for file in others
    )


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
    return _layout(layouts[0].data_format, members)


def _glob(layout: Layout, exact: bool) -> str:
    steps: list[str] = []
    for index, piece in enumerate(layout.pieces):
        if piece.kind is Kind.TEXT:
            steps.append(piece.text)
            continue
        texts = {values[index] for values in layout.values}
        if exact and piece.kind in (Kind.DATE, Kind.PART_OF_DATE):
            steps.append("[0-9]*")
        elif piece.kind is Kind.DATE and len({len(text) for text in texts}) == 1:
            steps.append(re.sub(r"[0-9]", "?", next(iter(texts))))
        else:
            steps.append("*")
    return re.sub(r"\*+", "*", "".join(steps))
