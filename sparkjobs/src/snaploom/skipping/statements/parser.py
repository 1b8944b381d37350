"""From SQL text to a statement: small, by hand, since no parser of SQL knows these statements.

Two forms are read: Flint's early form (`FOR COLUMNS (...)`, `VALUE_LIST`), and today's (rule S30).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches

from snaploom.errors import StatementInvalid
from snaploom.models.skippingindex import Index
from snaploom.skipping.statements.columns import indexes_of
from snaploom.skipping.statements.cursor import Cursor
from snaploom.skipping.statements.properties import (
    FIXED,
    PROPERTIES,
    REFRESH_MODES,
    value_as_kept,
)
from snaploom.skipping.statements.recognition import VERBS, is_like, is_ours
from snaploom.skipping.statements.syntax import (
    AlterIndex,
    AnalyzeIndex,
    CreateIndex,
    DescribeIndex,
    DropIndex,
    PathName,
    Properties,
    RecoverIndex,
    RefreshIndex,
    ShowIndexes,
    Statement,
    Subject,
    TableName,
    VacuumIndex,
)
from snaploom.skipping.statements.tokens import Token, TokenKind

_MOST_PARTS = 3
_NAMESPACE_PARTS = 2


def parse(text: str, types: Collection[str] = ()) -> Statement | None:
    """Parse a SQL statement; None when it is not about skipping indexes.

    Raises:
        StatementInvalid: it is about skipping indexes, and something is wrong with it.
    """
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
    indexes = indexes_of(cursor, is_seed_form=False, types=types)
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
    indexes = indexes_of(cursor, is_seed_form, types)
    where = _where(cursor) if cursor.takes("WHERE") else ""
    others = "" if where else "WHERE, "
    properties = _properties(cursor, PROPERTIES) if cursor.token.upper == "WITH" else ()
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
    if mode in REFRESH_MODES:
        cursor.advance()
    else:
        mode = ""
    cursor.end("" if mode else f"{', '.join(REFRESH_MODES)} or ")
    return RefreshIndex(subject, mode)


def _alter(cursor: Cursor, subject: Subject) -> AlterIndex:
    properties = _properties(cursor, PROPERTIES.keys() - FIXED)
    cursor.end()
    return AlterIndex(subject, properties)


def _without_options(
    statement: Callable[[Subject], Statement],
) -> Callable[[Cursor, Subject], Statement]:
    def read(cursor: Cursor, subject: Subject) -> Statement:
        cursor.end()
        return statement(subject)

    return read


_READERS: Mapping[str, Callable[[Cursor, Subject], Statement]] = {
    "REFRESH": _refresh,
    "ALTER": _alter,
    "DESCRIBE": _without_options(DescribeIndex),
    "DESC": _without_options(DescribeIndex),
    "DROP": _without_options(DropIndex),
    "VACUUM": _without_options(VacuumIndex),
    "ANALYZE": _without_options(AnalyzeIndex),
    "RECOVER": _without_options(RecoverIndex),
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
    """The condition's text: up to WITH outside parentheses, or the end."""
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
        kept = value_as_kept(
            key, cursor.value(f"a value of {key}: a text, a number, true or false")
        )
        if kept is None:
            expected = " or ".join(PROPERTIES[key])
            raise cursor.error(f"{key} cannot have this value", expected, value)
        properties[key] = kept
        if not cursor.takes_sign(","):
            cursor.expect_sign(")", " or ,")
            return tuple(sorted(properties.items()))


def _unknown_property(
    cursor: Cursor, token: Token, key: str, names: Collection[str]
) -> StatementInvalid:
    if key in FIXED:
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
