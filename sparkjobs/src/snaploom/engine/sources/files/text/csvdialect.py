"""How CSV is read unless a source has options: RFC 4180, of which Spark's own defaults differ.

Spark escapes quotes by backslashes, ends a record at every line end, and takes quotes that end
nowhere. RFC 4180, and so Excel, DuckDB, pandas, PostgreSQL and Python, doubles quotes and lets a
quoted value go over several lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from snaploom.engine.formats import NULL_TEXT

CSV_OPTIONS: Mapping[str, str] = {
    "mode": "FAILFAST",
    "enforceSchema": "false",
    "nullValue": NULL_TEXT,
}
"""Options of Spark's reader that are the same for all sources."""

_UTF_8 = frozenset(["utf-8", "utf8"])
_RECORD_OPTIONS = frozenset(["multiline", "linesep", "comment", "singlevariantcolumn"])
_WIDE = ("utf-16", "utf-32", "utf16", "utf32", "ucs-2", "x-utf", "unicode")


@dataclass(frozen=True)
class CsvDialect:
    """The options of a source that decide how records are separated."""

    separator: str
    """Between the values of a record."""
    quote: str
    """Around values; empty for none."""
    encoding: str
    ignores_blanks: bool
    """Whether blanks around values do not count."""
    is_strict: bool
    """Whether an ambiguous text is an error."""

    @property
    def is_utf_8(self) -> bool:
        """Whether the bytes of a line are its text."""
        return self.encoding.lower() in _UTF_8

    @property
    def is_wide(self) -> bool:
        """Whether a line end is more than one byte, so that files cannot be split by bytes."""
        return self.encoding.lower().startswith(_WIDE)


def dialect_of(options: Mapping[str, str]) -> CsvDialect | None:
    """The dialect of files whose lines are looked at before they are read; None for none.

    A source that declares how records end (`multiLine`, `lineSep`), or that has comments or
    another escape than doubled quotes, is read as declared.
    """
    given = {name.casefold(): value for name, value in options.items()}
    quote = given.get("quote", '"')
    if _RECORD_OPTIONS & given.keys() or len(quote) > 1 or given.get("escape", quote) != quote:
        return None
    blanks = [given.get(f"ignore{side}whitespace", "") for side in ("leading", "trailing")]
    # A separator as Spark takes it, which has names for some.
    text = given.get("sep", given.get("delimiter", ","))
    return CsvDialect(
        separator={"\\t": "\t", "\\\\": "\\"}.get(text, text),
        quote=quote,
        encoding=given.get("encoding", given.get("charset", "UTF-8")),
        ignores_blanks="true" in [text.lower() for text in blanks],
        is_strict=_is_strict(given),
    )


def default_options(options: Mapping[str, str]) -> Mapping[str, str]:
    """Options of Spark's reader for a source, which options of its own overrule."""
    given = {name.casefold(): value for name, value in options.items()}
    doubled = {"escape": given.get("quote") or '"'}
    strict = {"unescapedQuoteHandling": "RAISE_ERROR"} if _is_strict(given) else {}
    return {**CSV_OPTIONS, **doubled, **strict}


def _is_strict(given: Mapping[str, str]) -> bool:
    return given.get("mode", "FAILFAST").upper() == "FAILFAST"
