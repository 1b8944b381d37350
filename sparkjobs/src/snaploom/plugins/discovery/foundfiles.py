"""Files below a URI, listed within bounds."""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from snaploom.confidential import visible, without_secrets
from snaploom.errors import ArgumentInvalid, ObjectNotFound, SourceNotReadable
from snaploom.files.objectstore import ObjectInfo, ObjectStore
from snaploom.files.stores import open_store
from snaploom.localfiles import absolute_path
from snaploom.policy.addresses import store_kind
from snaploom.policy.secretdetection import secret_form

# Bounds of reading, and the evidence needed to declare something.

MOST_FILES = 100_000
"""Files that are listed below one URI: names only, some 100 bytes each."""
SOURCE_BYTES = 256 * 1024 * 1024
"""Bytes of one source that are read, of text after decompression: beyond it evenly spread parts."""
ALL_BYTES = 4 * 1024 * 1024 * 1024
"""Bytes of all sources that are read: of many sources each has its share, `LEAST_BYTES` or more."""
LEAST_BYTES = 16 * 1024 * 1024
SECONDS = 120
"""Seconds that the reading of one source takes, beyond which a sixteenth of it is read instead."""
MOST_VALUES = 100_000_000
"""Values of one source (rows times columns) that are read: a few bytes may stand for millions."""
MOST_PARTS = 2_000
"""Files of one source that are opened: each is a request or more to a store."""
PACKED = 8
"""Times as large as it is stored that text probably is, if it is packed."""
HEAD_BYTES = 1024 * 1024
"""Bytes at the beginning of a file by which its format is recognised, and the longest header."""
MOST_TABLES = 200
"""Tables of one database that are looked into; each takes some questions to its catalogue."""
DATABASE_ROWS = 20_000
"""Rows of one table of a database that are read: they come over a network, from a server that has
other work."""
FILE_VALUES = 10_000_000
"""Values of one table that are read, of a file that has several."""
# Forms that declarations have (`models.datasource`).
LONGEST_NAME = 512
"""Characters of the name of a column."""
LONGEST_URI = 1_900
"""Characters of a path; a glob is longer than it by a few."""

# Keys.
MOST_KEY_COLUMNS = 3
"""Columns of a compound key: four and more are found by chance in small samples."""
MOST_COLUMNS_COMBINED = 12
"""Columns of one source of which sets are tried: 66 pairs and 220 triples."""
LONGEST_KEY_TEXT = 64
"""Characters, on average, of a text that may be part of a key: longer ones are descriptions."""

# Relationships.
SAME_NAME = 0.8
"""Likeness of names from which they mean the same: equal, or equal but for singular and prefix."""
LIKE_NAME = 0.5
"""Likeness of names from which they may mean the same: an abbreviation, a part of a name."""
INCLUDED_SAME_NAME = 0.6
"""Share of values that must be in the parent where names are the same: registers lag behind."""
INCLUDED_LIKE_NAME = 0.9
"""Share where names are only alike."""
INCLUDED_OTHER_NAME = 0.95
"""Share where names have nothing in common: of 92 airports that flights go to, 88 are known."""
DISTINCTIVE_VALUES = 5
"""Distinct texts from which inclusion is evidence without a name: fewer (M, F) fit anywhere."""
FEW_VALUES = 3
"""Distinct texts that are enough where the parent has at least `WIDE_PARENT` times as many."""
WIDE_PARENT = 20
DENSE_SHARE = 0.5
"""Share of the whole numbers between least and greatest from which they are a sequence. Numbers of
a sequence from about 1 on are in every longer sequence, so that inclusion proves nothing."""
SEQUENCE_START = 1_000
"""Least value up to which a dense sequence counts as one that begins at 1."""
INCLUDED_COMPOUND = 0.8
"""Share of value combinations for a compound key, all of whose names must be alike."""
MOST_WEAK = 10
"""Weak relationships that are shown."""

# The output.
MOST_ELEMENTS = 200
"""Structs of one source in each row, on average, up to which it is grouped: those of nested arrays
multiply."""
MOST_STRUCTS = 500_000
"""Structs of arrays in one snapshot, where rows of a source are repeated: some hundred MB."""
MOST_REPEATED = 10
"""Such structs in each row, on average, that a larger output may have."""
MOST_JOINS = 60
"""Sources of one output, roles included."""
DEEPEST_JOIN = 6
"""Joins between the root and a source."""
MOST_COLUMNS = 2_000
"""Columns of one source, as many as a DataSource may declare."""


class NotRecognised(ValueError):
    """The bytes are not of the format; the text is the reason, for people."""


def refuse_width(columns: int) -> None:
    """Refuse more columns than a source has, before any of them is looked at.

    Raises:
        NotRecognised: there are more.
    """
    if columns > MOST_COLUMNS:
        raise NotRecognised(f"more than {MOST_COLUMNS:,} columns or keys, and a source has no more")


# The files below a URI with their sizes, listed once and never opened.

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True)
class Place:
    """A folder that was named, opened."""

    uri: str
    """Ends in `/`."""
    store: ObjectStore = field(compare=False, repr=False)


@dataclass(frozen=True)
class FoundFile:
    """A file below one of the URIs."""

    place: Place
    key: str
    """Relative to the place, `/`-separated."""
    size: int

    @property
    def uri(self) -> str:
        """As declarations name it."""
        return self.place.uri + self.key


@dataclass(frozen=True)
class LeftOut:
    """Something that is there and is not declared."""

    what: str
    """File, folder, table or relationship."""
    why: str


@dataclass(frozen=True)
class Guess:
    """A choice that the data leave open, for people."""

    what: str
    chosen: str
    others: tuple[str, ...]
    evidence: str
    change: str
    """Remedy if it is wrong."""

    @property
    def text(self) -> str:
        """The guess on one line."""
        others = f", and not {' or '.join(self.others)}" if self.others else ""
        return f"guess: {self.what}: {self.chosen}{others} ({self.evidence}); else {self.change}"


@dataclass(frozen=True)
class Question:
    """A choice that a person may make."""

    text: str
    options: tuple[str, ...]
    default: int
    """Place of the option that is taken without an answer."""
    effect: float
    """Values of the output that depend on it."""


Ask = Callable[[Sequence[Question]], Sequence[int | None]]
"""Asks a person. For each question it returns the place of the option that was chosen, or None
where it was not asked."""


def nobody(questions: Sequence[Question]) -> Sequence[int | None]:
    """Return no answer."""
    return [None] * len(questions)


@dataclass(frozen=True)
class Listing:
    """All files below the URIs."""

    files: tuple[FoundFile, ...]
    left_out: tuple[LeftOut, ...]


def list_files(uris: Iterable[str]) -> Listing:
    """The files below URIs, sorted by URI, each once.

    Raises:
        ArgumentInvalid: a URI has a secret in it, or letters that globs take for their own.
        SourceNotReadable: there is nothing at a URI.
        StorageError: a store cannot be asked.
    """
    found, left_out = dict[str, FoundFile](), list[LeftOut]()
    for uri in uris:
        files, others = _below(uri)
        found.update((file.uri, file) for file in files)
        left_out.extend(others)
    return Listing(tuple(found[uri] for uri in sorted(found)), tuple(dict.fromkeys(left_out)))


def _below(uri: str) -> tuple[list[FoundFile], list[LeftOut]]:
    refuse_secret(uri)
    _refuse_other_kinds(uri)
    whole = uri if _SCHEME.match(uri) else str(absolute_path(uri))
    if not uri or not _is_written_as_is(whole):
        raise ArgumentInvalid(
            "declarations cannot have this path",
            path="--from",
            found=visible(uri) or "an empty text",
            expected="a path of text without `$(`, which begins a variable",
            hint="name a folder or file of data; or rename it, or make a link to it without",
        )
    one = _as_file(whole)
    if one is not None:
        return [one], []
    store = open_store(whole.rstrip("/") + "/", create=False)
    place = Place(store.uri, store)
    listed = sorted(islice(store.list(""), MOST_FILES + 1), key=lambda info: info.key)
    if not listed:
        raise SourceNotReadable(
            "there are no files here",
            path="--from",
            found=f"nothing at {store.uri}",
            expected="a folder with files, or a file",
            hint="name the folder above: this is no glob"
            if re.search(r"[*?\[{]", uri)
            else "check the spelling; for a bucket, check endpoint and credentials in the "
            "environment as well",
        )
    why = f"only the first {MOST_FILES:,} files were looked at"
    left_out = [LeftOut(place.uri, why) for _ in listed[MOST_FILES:]]
    files = []
    for info in listed[:MOST_FILES]:
        reason = _not_readable(info)
        if reason:
            left_out.append(LeftOut(place.uri + info.key, reason))
        else:
            files.append(FoundFile(place, info.key, info.size))
    return files, left_out


def _not_readable(info: ObjectInfo) -> str:
    if not info.is_plain:
        return "a link, pipe or device, which is not followed"
    if not _is_written_as_is(info.key):
        return "its name has `$(`, which begins a variable, or is no text: rename it"
    return ""


def _is_written_as_is(path: str) -> bool:
    """Whether declarations can have a path as it is."""
    return "$(" not in path and path == path.encode("utf-8", "replace").decode("utf-8")


def _as_file(whole: str) -> FoundFile | None:
    """The one file that a URI names; None for a folder or a missing file."""
    head, _, name = whole.rstrip("/").rpartition("/")
    path = re.sub(r"^file:(?://)?(?=/)", "", whole)
    if path.startswith("/"):
        if not os.path.isfile(path):
            return None
    elif whole.endswith("/") or "." not in name or head.endswith(("/", ":")):
        return None
    store = open_store(head + "/", create=False)
    try:
        info = store.head(name)
    except ObjectNotFound:
        return None
    return None if info is None else FoundFile(Place(store.uri, store), name, info.size)


def _refuse_other_kinds(uri: str) -> None:
    scheme = uri.partition(":")[0].lower()
    kind = store_kind(scheme)
    if kind is not None and not kind.is_looked_into:
        raise ArgumentInvalid(
            f"{scheme}: is not looked into",
            path="--from",
            found=without_secrets(uri.partition("?")[0]),
            expected="a path, a URI with file:, s3:, gs: or az:, or a database (jdbc:)",
            hint="copy the newest files, with their folders, to a disk (`hdfs dfs -get`), start "
            "from the copy, and write the URI instead of its path into what was written",
        )


def refuse_secret(uri: str) -> None:
    """Refuse a URI with a user, a password or a signature in it, which declarations would show.

    Raises:
        ArgumentInvalid: there is one; it is not shown.
    """
    form = secret_form(uri)
    if form:
        raise ArgumentInvalid(
            f"there is {form} in this URI, and declarations are read by many",
            path="--from",
            found=without_secrets(re.sub(r"//[^/@]*@", "//***@", uri.partition("?")[0])),
            expected="a URI without user, password and signature",
            hint="leave them out; buckets take AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of the "
            "environment, a database <NAME>_DB_USER and <NAME>_DB_PASSWORD",
        )
