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

MOST_COMPARED = 2_000_000
"""Work of `Hints`: a third of a second at worst. A missing name of 15 characters among 1,000 such
names takes a tenth of it."""
LISTED = 12
"""Allowed names that a message lists before it says how many more there are."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question that names the most similar of the known names; empty when none is near."""
    near = nearest(name, known)
    return f"did you mean `{near}`?" if near else ""


class Hints:
    """Similar names for many missing ones, with a bound on the work for all of them together.

    Two names of some 100 characters take two milliseconds to compare, and whoever declares
    thousands of them would have each compared with each.

    Args:
        work: characters of missing names times characters of known ones that are compared.
    """

    def __init__(self, work: int = MOST_COMPARED) -> None:
        self._left = work

    def did_you_mean(self, name: str, known: Collection[str]) -> str:
        """As the function; empty as well where it would take too long."""
        if self._left > 0:
            self._left -= len(name) * sum(map(len, known))
        return did_you_mean(name, known) if self._left >= 0 else ""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The most similar of the known names, ignoring case; None when none is near."""
    folded: dict[str, str] = {}
    for candidate in known:
        folded.setdefault(candidate.casefold(), candidate)
    near = get_close_matches(name.casefold()[:256], folded, n=1, cutoff=0.6)
    return folded[near[0]] if near else None


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
