"""Names of columns, files, tables and folders of a metadata store."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from snaploom.errors import IndexNotFound, IndexNotPossible

# Names of the columns of a metadata store, and why some sets of them are refused.

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


# Names of files and tables in the store.

_COS = "cos"


def split_object_name(name: str) -> tuple[str, int] | None:
    """Path and modification time in ms; None for a name of another form."""
    path, mark, text = name.rpartition("#")
    digits = text.removeprefix("-")
    if not mark or not (digits.isascii() and digits.isdigit()) or len(digits) > _DIGITS:
        return None
    return path, int(text)


_DIGITS = 18
"""Of an int64 that surely fits."""


def bare_path(path: str) -> str:
    """A Hadoop path without scheme and authority."""
    _, _, rest = _split(path)
    return rest


def possible_names(path: str, version: int) -> tuple[str, ...]:
    """Every name by which a store may know a file, or a table's folder, without the time."""
    scheme, authority, rest = _split(path)
    names = [rest]
    bucket = authority.rpartition(".")[0] or authority
    if scheme.lower() == _COS:
        names.append(f"{_COS}://{bucket}{rest}")
    if version == 0:
        names.append(rest.removeprefix("/"))
        if scheme.lower() == _COS:
            names.append(bucket + rest)
    return tuple(dict.fromkeys(names))


def table_identifier(uri: str) -> str:
    """The name of a folder of files: its path without scheme, authority and one trailing slash."""
    return bare_path(uri).removesuffix("/")


def names_table(identifier: str, uri: str, table: str, version: int) -> bool:
    """Whether a stored identifier names a target, by folder or table name (empty: no table)."""
    names = {name.removesuffix("/") for name in possible_names(uri.removesuffix("/"), version)}
    parts = table.split(".") if table else []
    names |= {".".join(parts[start:]) for start in range(len(parts))}
    return identifier.removesuffix("/") in names


def _split(path: str) -> tuple[str, str, str]:
    colon, slash = path.find(":"), path.find("/")
    scheme, rest = "", path
    if colon > 0 and (slash < 0 or colon < slash):
        scheme, rest = path[:colon], path[colon + 1 :]
    authority = ""
    if rest.startswith("//"):
        authority, _, tail = rest[2:].partition("/")
        rest = f"/{tail}" if len(rest) > 2 + len(authority) else ""
    return scheme, authority, rest


# Location of a metadata store, by the reference's four kinds of locations.

LOCATION = "io.xskipper.parquet.mdlocation"
"""Property (and parameter) that names the location."""

OLD_LOCATION = "spark.ibm.metaindex.parquet.mdlocation"
"""The same property, of the predecessor."""


class LocationKind(StrEnum):
    """Meaning of a location's text."""

    EXPLICIT_LOCATION = "EXPLICIT_LOCATION"
    """The store itself."""
    EXPLICIT_BASE_PATH_LOCATION = "EXPLICIT_BASE_PATH_LOCATION"
    """A base path of stores of many tables; the default."""
    HIVE_TABLE_NAME = "HIVE_TABLE_NAME"
    """A table whose property names the store; else the property of its database."""
    HIVE_DB_NAME = "HIVE_DB_NAME"
    """A database whose property names a base path."""


def below_base(base: str, identifier: str) -> str:
    """The store of a table below a base path."""
    return f"{base.rstrip('/')}/{hashlib.sha256(identifier.encode()).hexdigest()}"


def resolve(
    kind: LocationKind,
    location: str,
    identifier: str,
    table_properties: Mapping[str, str],
    database_properties: Mapping[str, str],
) -> str:
    """The folder of a store.

    Args:
        kind: meaning of `location`.
        location: a path; of no use for the two kinds that name a table or database, whose
            properties are given instead.
        identifier: of the table.
        table_properties: of the table, for HIVE_TABLE_NAME.
        database_properties: of its database, for HIVE_TABLE_NAME and HIVE_DB_NAME.
    """
    if kind is LocationKind.EXPLICIT_LOCATION:
        return location.rstrip("/") or "/"
    if kind is LocationKind.EXPLICIT_BASE_PATH_LOCATION:
        return below_base(location, identifier)
    own = property_in(table_properties) if kind is LocationKind.HIVE_TABLE_NAME else None
    if own is not None:
        return own.rstrip("/") or "/"
    base = property_in(database_properties)
    if base is None:
        raise IndexNotFound(
            f"no property names the metadata store of {identifier}",
            expected=f"{LOCATION} on the table or its database",
            hint="name the folder of the store",
        )
    return below_base(base, identifier)


def property_in(properties: Mapping[str, str]) -> str | None:
    """The location that properties of a table or database name; None for none."""
    return properties.get(LOCATION, properties.get(OLD_LOCATION))
