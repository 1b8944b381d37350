"""Names of the columns of a metadata store, and why some sets of them are refused.

Names are for writing only. A reader takes columns and type of an index from the column's metadata
and never takes a name apart: in versions 0 and 1 `a_b_minmax` is an index on `a_b` as well as one
on `a` and `b`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from snaploom.errors import IndexNotPossible

OBJECT_NAME = "obj_name"
"""Column that names the file a row is about."""

VIRTUAL_PREFIX = "virtual_"
"""Prefix of the name of a partition column, since version 4."""

NEWEST_VERSION = 4
"""The version that is written, and the newest that is read."""

_KEY_LIST_DELIMITERS = frozenset(":;,")


def column_name(columns: Sequence[str], index: str, version: int = NEWEST_VERSION) -> str:
    """Column of an index; `index` is the name of its type in the store, columns in lower case."""
    if version == 0:
        return f"{':'.join(columns)}_{index}"
    if version == 1:
        return f"{'_'.join(columns)}_{index}"
    escaped = [escape(column) for column in columns]
    lengths = "-".join(str(utf16_length(column)) for column in escaped)
    return f"{'_'.join(escaped)}_{index}_{lengths}"


def escape(column: str) -> str:
    """A column's name without dots: `#` doubled first, then each dot made `$#$`."""
    return column.replace("#", "##").replace(".", "$#$")


def utf16_length(text: str) -> int:
    """Length as Java counts it: a character outside the basic plane counts twice."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def virtual_name(partition_column: str) -> str:
    """The column that holds a partition column's value, in its original case."""
    return VIRTUAL_PREFIX + partition_column


def check_names(leaves: Mapping[str, Sequence[str]], others: Iterable[str]) -> None:
    """Refuse columns whose names are ambiguous.

    The reference finds the leaf columns that an index's key encrypts by the prefix of their
    paths, and Spark resolves names without regard to case. So no index's name may begin another
    column's leaf path, nor may two names differ in case only (rule S29).

    Args:
        leaves: leaf paths by the name of the index's column.
        others: names of the other columns of the store.

    Raises:
        IndexNotPossible: with both names.
    """
    paths = [(name, leaf.lower()) for name, own in leaves.items() for leaf in own]
    paths += [(name, name.lower()) for name in others]
    roots: dict[str, str] = {}
    for name in [*leaves, *others]:
        if name.lower() in roots:
            raise _clash(name, roots[name.lower()])
        roots[name.lower()] = name
    for name in leaves:
        for other, leaf in paths:
            if other != name and leaf.startswith(name.lower()):
                raise _clash(name, other)


def check_key_list(labels: Iterable[str], leaves: Iterable[str]) -> None:
    """Raise `IndexNotPossible` for separators in labels and leaf paths of a column key list."""
    for text in [*labels, *leaves]:
        if _KEY_LIST_DELIMITERS & set(text):
            raise IndexNotPossible(
                "an encrypted index of the XSKIPPER form names its columns and keys in one list",
                found=text,
                expected="no colon, semicolon or comma in key labels and in names of such columns",
                hint="keep this index in the NATIVE form",
            )


def _clash(name: str, other: str) -> IndexNotPossible:
    return IndexNotPossible(
        "two columns of the metadata store cannot be distinguished by the beginning of their names",
        found=f"{name} and {other}",
        expected="no name that another one begins with",
        hint="leave one of the two indexes out, rename a column, or keep the index as NATIVE",
    )
