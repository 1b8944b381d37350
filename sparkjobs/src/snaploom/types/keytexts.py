"""Texts of keys as people write them: their normalisations in plain Python, and what one explains.

`snaploom.engine.keys` computes the same in Spark.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from snaploom.models.datarelationship import Normalization

WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""Characters of Unicode's property `White_Space`, all of them."""
DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
"""Hyphens, dashes and the minus sign."""

CANDIDATES: tuple[tuple[Normalization, ...], ...] = (
    (Normalization.TRIM,),
    (Normalization.UPPER,),
    (Normalization.STRIP_LEADING_ZEROS,),
    (Normalization.INTEGER,),
    (Normalization.NFC,),
    (Normalization.REMOVE_DASHES,),
    (
        Normalization.TRIM,
        Normalization.NFC,
        Normalization.UPPER,
        Normalization.REMOVE_DASHES,
        Normalization.STRIP_LEADING_ZEROS,
    ),
)
"""Normalisations whose effect is measured, the simplest first; the last is for keys that differ in
several ways. LOWER makes equal what UPPER does, but for a few letters such as `ß`."""


def normalized(text: str | None, steps: Iterable[Normalization]) -> str | None:
    """Return a key's text after some steps; None is NULL, and so is what becomes empty."""
    for step in steps:
        text = _STEPS[step](text) or None if text else None
    return text


def _stripped(text: str) -> str:
    return text.lstrip("0") or text[-1:]


def _integer(text: str) -> str:
    cut = text.strip(WHITE_SPACE)
    if re.fullmatch(r"[+-]?[0-9]+(?:[.]0+)?", cut) is None:
        return ""
    digits = cut.partition(".")[0].lstrip("+-").lstrip("0") or "0"
    return f"-{digits}" if cut.startswith("-") and digits != "0" else digits


_STEPS: Mapping[Normalization, Callable[[str], str]] = MappingProxyType(
    {
        Normalization.TRIM: lambda text: text.strip(WHITE_SPACE),
        Normalization.UPPER: str.upper,
        Normalization.LOWER: str.lower,
        Normalization.STRIP_LEADING_ZEROS: _stripped,
        Normalization.INTEGER: _integer,
        Normalization.NFC: lambda text: unicodedata.normalize("NFC", text),
        Normalization.REMOVE_DASHES: lambda text: text.translate(dict.fromkeys(map(ord, DASHES))),
    }
)


@dataclass(frozen=True, slots=True)
class Explanation:
    """A normalisation under which more values of a child are among those of its parent."""

    steps: tuple[Normalization, ...]
    share: float
    """Share of the child's distinct values that are found with it."""
    as_written: float
    """Share that is found without it."""


def explanations(
    child: Iterable[str | None], parent: Iterable[str | None]
) -> Iterator[Explanation]:
    """The share of a child's key that is found under each normalisation.

    Values are texts as the data has them, each at least once. A normalisation that makes two
    different values of the parent equal is none: it would multiply rows.
    """
    wanted, known = set(child) - {None, ""}, set(parent) - {None, ""}
    if not wanted or wanted <= known:
        return
    as_written = len(wanted & known) / len(wanted)
    for steps in CANDIDATES:
        spelled = Counter(normalized(text, steps) for text in known)
        del spelled[None]
        if max(spelled.values(), default=0) <= 1:
            found = sum(normalized(text, steps) in spelled for text in wanted)
            yield Explanation(steps, found / len(wanted), as_written)


def explains_more(child: Iterable[str | None], parent: Iterable[str | None]) -> Explanation | None:
    """The normalisation that explains most of a child's key, if one explains more than none does.

    Values are those of `explanations`.
    """
    best = max(explanations(child, parent), key=lambda one: one.share, default=None)
    return best if best is not None and best.share > best.as_written else None
