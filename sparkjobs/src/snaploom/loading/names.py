"""Names that were probably meant: near misses, names of earlier designs, allowed names of a place.

Earlier designs of the same resources used other names (ruling K15 of `join.md` section 0); people
who come with old files are told the new name rather than a near miss by spelling.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Union

from pydantic import BaseModel

from snaploom.models.base import ApiModel

FORMER_NAMES = {
    "equivalentFields": ("representations",),
    "fields": ("joinKey",),
    "castType": ("castDataType",),
    "sourceUris": ("sourceUriGlobs",),
    "snapshotConfig": ("snapshot", "snapshotFormat"),
    "snapshotFilters": ("snapshotFilter",),
    "interval": ("fromInterval",),
    "inverval": ("fromInterval",),
    "prefrence": ("preference",),
    "catchupOrder": ("snapshotCatchupMode",),
    "output": ("outputFolder",),
    "dataUri": ("folderUri",),
    "metadataUri": ("folderUri",),
    "format": ("dataFormat",),
    "compression": ("dataCompression",),
    "snapshot": ("snapshotFormat", "snapshotFilter"),
    "hivePartition": ("hivePartitioned",),
    "autoDelete": ("snapshotAutoDelete",),
    "missingMode": ("snapshotMissingMode",),
    "transformation": ("transformations",),
    "sqlQuery": ("dataQuery",),
    "query": ("dataQuery",),
    "connection": ("url",),
    "behavior": ("behaviour",),
    "timezone": ("timeZone", "defaultTimezone", "outputTimezone"),
    "timeZone": ("timezone", "defaultTimezone", "outputTimezone"),
}
"""Names that were, or might well have been, and what they are called now."""

MOST_COMPARED = 4_000_000
"""Pairs of characters that are compared to guess a name; both names may be a user's. So many take
half a second at most, and are those of a name of 20 characters with 10,000 like it."""

_LONGEST_GUESSED = 256
"""Characters of a name that are compared."""

LISTED = 12
"""Allowed names that a message lists before it says how many more there are."""


class Guesses:
    """Guesses of what the names of one set of resources were meant for.

    Comparing names with one another takes as long as both are together. Once it has taken as much
    as `MOST_COMPARED`, there are no more guesses.
    """

    def __init__(self) -> None:
        self._left = MOST_COMPARED

    def did_you_mean(self, name: str, known: Collection[str]) -> str:
        """As `did_you_mean`, while there is work left."""
        if self._left > 0:
            self._left -= _pairs(name, known)
        return did_you_mean(name, known) if self._left > 0 else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question that names the most similar of the known names; empty when none is near."""
    near = nearest(name, known)
    return f"did you mean `{near}`?" if near else ""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The most similar of the known names, ignoring case; None when none is near.

    None as well where there are so many that finding it would take more than `MOST_COMPARED`.
    """
    folded: dict[str, str] = {}
    for candidate in known:
        folded.setdefault(candidate.casefold(), candidate)
    if _pairs(name, folded) > MOST_COMPARED:
        return None
    near = get_close_matches(name.casefold()[:_LONGEST_GUESSED], folded, n=1, cutoff=0.6)
    return folded[near[0]] if near else None


def _pairs(name: str, known: Collection[str]) -> int:
    """Pairs of characters of a name and those it is compared with."""
    return min(len(name), _LONGEST_GUESSED) * sum(map(len, known))


def field_hint(name: str, allowed: tuple[str, ...]) -> str:
    """What to write instead of a field that does not exist at a place."""
    renamed = _renamed(name, allowed)
    if renamed is not None:
        return f"it is called `{renamed}`"
    return did_you_mean(name, allowed)


def meant_field(name: str, allowed: tuple[str, ...]) -> str | None:
    """The field that a name which does not exist was probably meant for."""
    return _renamed(name, allowed) or nearest(name, allowed)


def _renamed(name: str, allowed: tuple[str, ...]) -> str | None:
    return next((new for new in FORMER_NAMES.get(name, ()) if new in allowed), None)


def listing(allowed: tuple[str, ...]) -> str:
    """What is allowed, as far as it is short enough to help."""
    if not allowed:
        return ""
    more = f" and {len(allowed) - LISTED} more" if len(allowed) > LISTED else ""
    return f"{', '.join(allowed[:LISTED])}{more}"


@lru_cache(maxsize=4096)
def allowed_names(model: type[ApiModel], loc: tuple[str | int, ...]) -> tuple[str, ...]:
    """Names of the fields at a place inside a model; empty where any name is allowed."""
    place: Any = model
    for segment in loc:
        place = _step(place, segment)
    target = _unwrapped(place)
    if isinstance(target, type) and issubclass(target, ApiModel):
        return tuple(field.alias or name for name, field in target.model_fields.items())
    return ()


def _step(place: Any, segment: str | int) -> Any:
    target = _unwrapped(place)
    if isinstance(target, type) and issubclass(target, BaseModel):
        for name, field in target.model_fields.items():
            if (field.alias or name) == segment:
                return field.annotation
        return None
    arguments = typing.get_args(target)
    origin = typing.get_origin(target)
    if origin is tuple and arguments:
        return arguments[0]
    if isinstance(origin, type) and issubclass(origin, Mapping) and len(arguments) == 2:
        return arguments[1]
    return None


def _unwrapped(annotation: Any) -> Any:
    """The annotation without `Annotated` and `| None`."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _unwrapped(typing.get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        members = [a for a in typing.get_args(annotation) if a is not type(None)]
        return _unwrapped(members[0]) if len(members) == 1 else annotation
    return annotation
