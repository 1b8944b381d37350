"""Character sets that Spark's readers of files know, each format in its own way.

Readers of CSV and JSON have a list and refuse everything else, other names of its members too.
XML declares its own, or takes any name that Java knows. Text is read as UTF-8, whatever is given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

OF_RECORDS = "UTF-8 US-ASCII ISO-8859-1 UTF-16 UTF-16BE UTF-16LE UTF-32"
"""The list of charsets of Spark's readers of CSV and JSON."""
OF_TEXT = "UTF-8 US-ASCII"
"""Charsets whose texts are all UTF-8, which is how Spark reads text regardless of its option."""
OF_XML = "a character set such as UTF-8, ISO-8859-1, windows-1252 or UTF-16"
"""Description of the charsets that `is_known` accepts, for people."""
TO_UTF_8 = (
    "convert the files to UTF-8, such as by `iconv -f windows-1252 -t UTF-8`, and leave this out"
)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:+-]{0,63}")
_OF_SEVERAL_BYTES = frozenset({"utf-16", "utf-32"})
"""Of which Spark does not find line ends, since a byte order mark decides their bytes."""


def is_known(name: str) -> bool:
    """Whether a name is that of a character set, by Python's list, which has the names of Java."""
    if not _NAME.fullmatch(name):
        return False
    try:
        "a".encode(name)
    except (LookupError, UnicodeError):
        return False
    return True


def json_option_missing(options: Mapping[str, str]) -> tuple[str, str, str] | None:
    """The option of a character set that JSON in lines cannot be read with, as it stands.

    Args:
        options: of Spark's reader.

    Returns:
        The option, its value and what would be right; None where nothing is at fault, or the
        character set is none that Spark knows, which is a fault of its own.
    """
    given = {option.casefold(): (option, value) for option, value in options.items()}
    option, charset = given.get("encoding", given.get("charset", ("", "UTF-8")))
    is_whole = given.get("multiline", ("", ""))[1].casefold() == "true"
    is_other = charset.casefold() not in OF_RECORDS.casefold().split()
    if is_whole or is_other or charset.casefold() == "utf-8":
        return None
    if charset.casefold() in _OF_SEVERAL_BYTES:
        return option, charset, 'UTF-16LE or UTF-16BE with lineSep "\\n", or multiLine "true"'
    if "linesep" in given:
        return None
    return (
        option,
        charset,
        f'lineSep, such as "\\n", beside {charset}',
    )
