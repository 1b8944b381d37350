"""Names of files and tables in the store.

A file is `<path without scheme and authority>#<modification time in ms>`. The path may itself hold
a `#`, so the last one splits. A table is named by its path without scheme, authority and trailing
slash, or as `database.table`; the SHA-256 of that name is its folder below a base path.

IBM's Cloud Object Storage has an identifier of its own: `cos://<bucket><path>`, the service's name
left out; version 0 has `<bucket><path>` for it, and plain paths without the leading slash there.
"""

from __future__ import annotations

_COS = "cos"


def object_name(path: str, modified: int) -> str:
    """Name of a file, by its Hadoop path and time in milliseconds since 1970."""
    return f"{bare_path(path)}#{modified}"


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
