"""Names of tables as a declaration writes them: `schema.table`, letter for letter.

Databases fold names that stand without quotes, each in its own way. A reference here is what the
database's catalogue holds, and is quoted before it gets there, so that it means one table and can
never be anything but a name.
"""

from __future__ import annotations

import re

MOST_PARTS = 3
"""Database, schema and table; a fourth would name another server."""

_PART = re.compile(r'"((?:[^"]|"")+)"|([^."\x00-\x1f]+)')


class TableNameInvalid(ValueError):
    """A text is not a name of a table."""


def table_parts(reference: str) -> tuple[str, ...]:
    """The names of a reference, outermost first, without quotes.

    Raises:
        TableNameInvalid: quotes do not match, a name is empty, or there are too many.
    """
    parts: list[str] = []
    position = 0
    while True:
        match = _PART.match(reference, position)
        if match is None:
            raise TableNameInvalid("a name is empty, or its quotes do not match")
        parts.append(match[1].replace('""', '"') if match[1] else match[2].strip())
        position = match.end()
        if position == len(reference):
            break
        if reference[position] != ".":
            raise TableNameInvalid("something stands behind a quoted name")
        position += 1
    if not all(parts) or len(parts) > MOST_PARTS:
        raise TableNameInvalid(f"{len(parts)} names, of which none may be empty")
    return tuple(parts)
