"""Statements about skipping indexes: from SQL text to data, and on to declarations."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice

from snaploom.errors import IndexNotPossible, StatementInvalid
from snaploom.models.skippingindex import Index, RefreshMode, SkippingIndex
from snaploom.skipping.lifecycle.alteration import Alteration
from snaploom.skipping.lifecycle.declaration import NATIVE, OPEN_SEARCH, Declaration
from snaploom.skipping.statements import columns
from snaploom.skipping.statements.columns import OWN_PROPERTIES, Cursor, Token, TokenKind, tokens_of
from snaploom.skipping.stores.folder import uri_of_store

# Statements about skipping indexes as data.


@dataclass(frozen=True)
class TableName:
    """A table of Spark's catalog."""

    parts: tuple[str, ...]
    """`catalog`, `database`, `table`; the last one to three of them."""

    @property
    def label(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True)
class PathName:
    """Files below a path, as Spark names them in SQL: ``parquet.`/data/flights` ``."""

    format: str
    """Spark's short name of the format."""
    path: str
    options: tuple[tuple[str, str], ...] = ()
    """Options of Spark's reader, in order of their names; SQL has no place for them."""

    @property
    def label(self) -> str:
        return self.path


Subject = TableName | PathName
"""Table or path of an index."""


Properties = tuple[tuple[str, str], ...]
"""Properties of `WITH (...)`: lower-case names and values as text, as they were written."""


@dataclass(frozen=True)
class CreateIndex:
    """`CREATE SKIPPING INDEX [IF NOT EXISTS] ON t (...) [WHERE ...] [WITH (...)]`."""

    subject: Subject
    indexes: tuple[Index, ...]
    where: str = ""
    properties: Properties = ()
    if_not_exists: bool = False


@dataclass(frozen=True)
class RefreshIndex:
    """`REFRESH SKIPPING INDEX ON t [FULL | INCREMENTAL | AUTO]`."""

    subject: Subject
    mode: str = ""
    """FULL, INCREMENTAL or AUTO; empty for the declared one."""


@dataclass(frozen=True)
class PlainStatement:
    """`{DESC[RIBE] | DROP | VACUUM | ANALYZE | RECOVER} SKIPPING INDEX ON t`."""

    verb: str
    """`DESCRIBE` for both of its forms."""
    subject: Subject


@dataclass(frozen=True)
class AlterIndex:
    """`ALTER SKIPPING INDEX ON t WITH (...)`."""

    subject: Subject
    properties: Properties


@dataclass(frozen=True)
class ShowIndexes:
    """`SHOW FLINT {INDEX | INDEXES} [EXTENDED] IN catalog[.database]`."""

    namespace: tuple[str, ...]
    """`catalog`, or `catalog` and `database`."""
    is_extended: bool = False
    """Whether a column shows what went wrong."""


Statement = CreateIndex | RefreshIndex | PlainStatement | AlterIndex | ShowIndexes


# Converts statements and resources to declarations, the only input of the engine.


@dataclass(frozen=True)
class StorePlace:
    """Declared place of an index."""

    location: str = ""
    """Folder (or cluster) below which it is kept; empty for the session's."""
    form: str = NATIVE


def declaration_of_statement(statement: CreateIndex) -> Declaration:
    """Declaration of a statement."""
    properties = dict(statement.properties)
    return Declaration(
        indexes=statement.indexes,
        where=statement.where,
        enabled=properties.get("enabled", "true") == "true",
        mode=mode_of(properties) or RefreshMode.AUTO,
        form=properties.get("form", NATIVE),
        footer_key_label=properties.get("footer_key_label", ""),
        plaintext_footer=properties.get("plaintext_footer") == "true",
        properties=other_properties(properties),
    )


def place_of_statement(statement: CreateIndex) -> StorePlace:
    """Place of the index that a statement declares."""
    properties = dict(statement.properties)
    return StorePlace(location=properties.get("location", ""), form=properties.get("form", NATIVE))


def alteration_of_statement(statement: AlterIndex) -> Alteration:
    """Alteration of a statement."""
    properties = dict(statement.properties)
    return Alteration(
        enabled=properties["enabled"] == "true" if "enabled" in properties else None,
        mode=mode_of(properties),
        properties=dict(other_properties(properties)),
    )


def mode_of(properties: Mapping[str, str]) -> RefreshMode | None:
    """The refresh mode in properties of either name, if any; `IndexNotPossible` for two."""
    modes = {
        mode
        for name, mode in (
            ("auto_refresh", RefreshMode.AUTO),
            ("incremental_refresh", RefreshMode.INCREMENTAL),
        )
        if properties.get(name) == "true"
    }
    if "refresh_mode" in properties:
        modes.add(RefreshMode(properties["refresh_mode"]))
    if len(modes) > 1:
        raise IndexNotPossible(
            "the properties ask for two modes of refresh",
            found=" and ".join(sorted(modes)),
            expected="one of refresh_mode, auto_refresh and incremental_refresh",
            hint="leave one of the two out",
        )
    return modes.pop() if modes else None


def other_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties without a field in declarations."""
    return {name: value for name, value in properties.items() if name not in OWN_PROPERTIES}


def declaration_of_resource(resource: SkippingIndex) -> Declaration:
    """Declaration of a resource, which owns the index (rule S26)."""
    spec, encryption = resource.spec, resource.spec.encryption
    return Declaration(
        indexes=spec.indexes,
        where=spec.where or "",
        enabled=spec.enabled,
        mode=spec.refresh.mode,
        owner=resource.identity,
        form=place_of_store(resource).form,
        footer_key_label="" if encryption is None else encryption.footer_key_label,
        plaintext_footer=encryption is not None and encryption.plaintext_footer,
    )


def place_of_store(resource: SkippingIndex) -> StorePlace:
    """Place of the index that a resource declares."""
    store = resource.spec.store
    if store.open_search is not None:
        return StorePlace(location=uri_of_store(store.open_search), form=OPEN_SEARCH)
    if store.parquet is None:
        return StorePlace()
    return StorePlace(location=store.parquet.location, form=store.parquet.form.value)


# Recognises SQL about skipping indexes, correctly spelt or not.

KEYWORD_VERBS = frozenset({"CREATE", "DROP", "ALTER", "ANALYZE", "RECOVER"})
"""In Spark a keyword follows these, so a word like SKIPPING makes the statement ours."""
NAME_VERBS = frozenset({"REFRESH", "DESCRIBE", "DESC", "VACUUM"})
"""A name may follow these, which may be `skipping`: the next word decides."""
VERBS = KEYWORD_VERBS | NAME_VERBS
_LOOKED_AT = 5
_OR_REPLACE = ("OR", "REPLACE")


def is_ours(text: str) -> bool:
    """Whether a text is a statement about skipping indexes, or is meant to be one."""
    head = tuple(islice(tokens_of(text), _LOOKED_AT))
    words = tuple(token.upper for token in head)
    verb, rest = words[0], words[1:]
    if rest[:2] == ("SKIPPING", "INDEX") and _at(rest, 2) in ("ON", "IF"):
        return True
    if verb == "CREATE" and rest[:2] == _OR_REPLACE:
        return is_like(_at(rest, 2), "SKIPPING")
    if verb == "SHOW":
        return is_like(_at(rest, 0), "FLINT") and is_like(_at(rest, 1), "INDEXES")
    if not is_like(_at(rest, 0), "SKIPPING"):
        return False
    return verb in KEYWORD_VERBS or (verb in NAME_VERBS and _names_an_index(verb, rest, head))


def _names_an_index(verb: str, rest: Sequence[str], head: Sequence[Token]) -> bool:
    """Whether INDEX follows, or ON; just `DESC skipping index` is about a column, for Spark."""
    if _at(rest, 1) == "ON":
        return True
    ends = head[3].kind is TokenKind.END or head[3].is_sign(";") if len(head) > 3 else True
    is_column = verb.startswith("DESC") and ends
    return is_like(_at(rest, 1), "INDEX") and not is_column


def _at(words: Sequence[str], position: int) -> str:
    return words[position] if position < len(words) else ""


def is_like(word: str, keyword: str) -> bool:
    """Whether a word is a keyword, or one with a slip or two in it."""
    allowed = 1 if len(keyword) < 6 else 2
    return bool(word) and _distance(word, keyword) <= allowed


def _distance(first: str, second: str) -> int:
    """Letters to insert, leave out, replace or swap with their neighbour."""
    before: list[int] = []
    above = list(range(len(second) + 1))
    for row, letter in enumerate(first, start=1):
        current = [row]
        for column, other in enumerate(second, start=1):
            best = min(
                above[column] + 1, current[column - 1] + 1, above[column - 1] + (letter != other)
            )
            is_swapped = (
                row > 1 and column > 1 and letter == second[column - 2] and first[row - 2] == other
            )
            current.append(min(best, before[column - 2] + 1) if is_swapped else best)
        before, above = above, current
    return above[-1]


# From SQL text to a statement: small, by hand, since no parser of SQL knows these statements.

_MOST_PARTS = 3
_NAMESPACE_PARTS = 2


def parse(text: str, types: Collection[str] = ()) -> Statement | None:
    """Parse a SQL statement; None when it is not about skipping indexes."""
    if not is_ours(text):
        return None
    cursor = Cursor(text)
    verb = cursor.token
    if verb.upper == "SHOW":
        return _show(cursor)
    if verb.upper == "CREATE":
        return _create(cursor, types)
    read = _READERS.get(verb.upper)
    if read is None:
        near = [known for known in sorted(VERBS) if is_like(verb.upper, known)]
        raise cursor.error(
            "this is not done with a skipping index", " or ".join(near or sorted(VERBS))
        )
    cursor.advance()
    cursor.expect("SKIPPING", "INDEX", "ON")
    return read(cursor, _subject(cursor))


def parse_subject(text: str) -> Subject:
    """Parse the table or path that a text names; `StatementInvalid` if it names none."""
    cursor = Cursor(text)
    subject = _subject(cursor)
    cursor.end()
    return subject


def parse_indexes(text: str, types: Collection[str] = ()) -> tuple[Index, ...]:
    """Parse a list of indexes: `price MIN_MAX, lower(carrier) VALUE_SET(50)`."""
    cursor = Cursor(f"({text})")
    indexes = columns.indexes_of(cursor, is_seed_form=False, types=types)
    cursor.end()
    return indexes


def _create(cursor: Cursor, types: Collection[str]) -> CreateIndex:
    cursor.expect("CREATE", "SKIPPING", "INDEX")
    if_not_exists = cursor.token.upper == "IF"
    if if_not_exists:
        cursor.expect("IF", "NOT", "EXISTS")
    cursor.expect("ON")
    subject = _subject(cursor)
    is_seed_form = cursor.token.upper == "FOR"
    if is_seed_form:
        cursor.expect("FOR", "COLUMNS")
    elif not cursor.token.is_sign("("):
        cursor.refuse("( or FOR COLUMNS (")
    indexes = columns.indexes_of(cursor, is_seed_form, types)
    where = _where(cursor) if cursor.takes("WHERE") else ""
    others = "" if where else "WHERE, "
    properties = _properties(cursor, columns.PROPERTIES) if cursor.token.upper == "WITH" else ()
    cursor.end("" if properties else f"{others}WITH or ")
    return CreateIndex(subject, indexes, where, properties, if_not_exists)


def _show(cursor: Cursor) -> ShowIndexes:
    cursor.expect("SHOW", "FLINT")
    if not (cursor.takes("INDEXES") or cursor.takes("INDEX")):
        cursor.refuse("INDEXES or INDEX")
    is_extended = cursor.takes("EXTENDED")
    if not cursor.takes("IN"):
        cursor.refuse("IN" if is_extended else "IN or EXTENDED")
    parts = _parts(cursor, "the name of a catalog, or catalog.database")
    if len(parts) > _NAMESPACE_PARTS:
        cursor.refuse("catalog or catalog.database", parts[_NAMESPACE_PARTS])
    cursor.end()
    return ShowIndexes(tuple(part.value for part in parts), is_extended)


def _refresh(cursor: Cursor, subject: Subject) -> RefreshIndex:
    mode = cursor.token.upper
    if mode in columns.REFRESH_MODES:
        cursor.advance()
    else:
        mode = ""
    cursor.end("" if mode else f"{', '.join(columns.REFRESH_MODES)} or ")
    return RefreshIndex(subject, mode)


def _alter(cursor: Cursor, subject: Subject) -> AlterIndex:
    properties = _properties(cursor, columns.PROPERTIES.keys() - columns.FIXED)
    cursor.end()
    return AlterIndex(subject, properties)


def _plain(verb: str) -> Callable[[Cursor, Subject], Statement]:
    def read(cursor: Cursor, subject: Subject) -> Statement:
        cursor.end()
        return PlainStatement(verb, subject)

    return read


_READERS: Mapping[str, Callable[[Cursor, Subject], Statement]] = {
    "REFRESH": _refresh,
    "ALTER": _alter,
    **{verb: _plain(verb) for verb in ("DESCRIBE", "DROP", "VACUUM", "ANALYZE", "RECOVER")},
    "DESC": _plain("DESCRIBE"),
}


def _subject(cursor: Cursor) -> Subject:
    parts = _parts(cursor, "the name of a table, or format.`path`")
    if len(parts) > _MOST_PARTS:
        cursor.refuse("catalog.database.table at most", parts[_MOST_PARTS])
    last = parts[-1]
    is_path = len(parts) == 2 and last.kind is TokenKind.NAME and "/" in last.value
    if is_path:
        return PathName(parts[0].value.lower(), last.value)
    return TableName(tuple(part.value for part in parts))


def _parts(cursor: Cursor, what: str) -> tuple[Token, ...]:
    parts = [cursor.name(what)]
    while cursor.takes_sign("."):
        parts.append(cursor.name("a name behind the ."))
    empty = next((part for part in parts if not part.value), None)
    if empty is not None:
        cursor.refuse("a name", empty)
    return tuple(parts)


def _where(cursor: Cursor) -> str:
    first = last = cursor.token
    depth = 0
    while cursor.token.kind is not TokenKind.END and not cursor.token.is_sign(";"):
        if depth == 0 and cursor.token.upper == "WITH":
            break
        depth += cursor.token.is_sign("(") - cursor.token.is_sign(")")
        if depth < 0:
            cursor.refuse("a ( before it")
        last = cursor.advance()
    if depth > 0:
        cursor.refuse(")")
    if first is cursor.token:
        cursor.refuse("a condition")
    return cursor.text[first.start : last.end]


def _properties(cursor: Cursor, names: Collection[str]) -> Properties:
    cursor.expect("WITH")
    cursor.expect_sign("(")
    properties: dict[str, str] = {}
    while True:
        name = cursor.token
        key = _key(cursor)
        if key in properties:
            raise cursor.error("this is given twice", "every name once", name)
        if key not in names:
            raise _unknown_property(cursor, name, key, names)
        # The peer lets the sign be left out.
        cursor.takes_sign("=")
        value = cursor.token
        kept = columns.value_as_kept(
            key, cursor.value(f"a value of {key}: a text, a number, true or false")
        )
        if kept is None:
            expected = " or ".join(columns.PROPERTIES[key])
            raise cursor.error(f"{key} cannot have this value", expected, value)
        properties[key] = kept
        if not cursor.takes_sign(","):
            cursor.expect_sign(")", " or ,")
            return tuple(sorted(properties.items()))


def _unknown_property(
    cursor: Cursor, token: Token, key: str, names: Collection[str]
) -> StatementInvalid:
    if key in columns.FIXED:
        return cursor.error(
            "this is decided when an index is created", f"one of {', '.join(sorted(names))}", token
        )
    near = get_close_matches(key, sorted(names), n=1)
    expected = near[0] if near else f"one of {', '.join(sorted(names))}"
    return cursor.error("there is no property of this name", expected, token)


def _key(cursor: Cursor) -> str:
    if cursor.token.kind is TokenKind.STRING:
        return cursor.advance().value.lower()
    parts = _parts(cursor, "a name")
    return ".".join(part.value for part in parts).lower()
