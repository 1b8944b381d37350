"""Texts of messages about values, and names that were probably meant instead of others.

Earlier designs of the same resources used other names (rule W1); people
with files of earlier versions get the new name rather than a near miss by spelling.
"""

from collections.abc import Collection, Iterable
from difflib import get_close_matches

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
"""Former names, or likely ones, with today's."""

MOST_COMPARED = 4_000_000
"""Pairs of characters that are compared to guess a name; both names may be a user's. So many take
half a second at most, and are those of a name of 20 characters with 10,000 like it."""

_LONGEST_GUESSED = 256
"""Characters of a name that are compared."""

_SHORTEST_PART = 3
"""Letters of a name that are enough to take a longer one for it, where only one begins so."""

_LONGEST_SHOWN = 80
"""Characters of a text that a message shows."""

LISTED = 12
"""Allowed names that a message lists before it gives the number of the others."""


class Guesses:
    """Guesses of the names of one set of resources that misspelt ones stand for.

    Comparing two names takes as long as their lengths multiplied. Once all comparisons have taken
    `most` pairs of characters, there are no more guesses.
    """

    def __init__(self, most: int = MOST_COMPARED) -> None:
        self._left = most

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
    wanted = name.casefold()[:_LONGEST_GUESSED]
    near = get_close_matches(wanted, folded, n=1, cutoff=0.6)
    # `separator` is `sep`, and `desc` a description: no other way to spell them is that near.
    near = near or [each for each in folded if _is_short_for(*sorted((each, wanted), key=len))]
    return folded[near[0]] if len(near) == 1 else None


def _is_short_for(short: str, long: str) -> bool:
    return len(short) >= _SHORTEST_PART and long.startswith(short)


def _pairs(name: str, known: Collection[str]) -> int:
    return min(len(name), _LONGEST_GUESSED) * sum(map(len, known))


def field_hint(name: str, allowed: tuple[str, ...]) -> str:
    """The field to write instead of one that does not exist at a place."""
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
    """The allowed names, as far as the list is short enough to help."""
    if not allowed:
        return ""
    more = f" and {len(allowed) - LISTED} more" if len(allowed) > LISTED else ""
    return f"{', '.join(allowed[:LISTED])}{more}"


def display(value: object) -> str:
    """A value as the user would recognise it; of anything larger than a scalar only its shape."""
    match value:
        case None:
            return "nothing (null)"
        case bool():
            return "true" if value else "false"
        case str():
            return (
                f"'{value}'" if len(value) <= _LONGEST_SHOWN else f"'{value[:_LONGEST_SHOWN]}...'"
            )
        case dict():
            return "a mapping" if value else "an empty mapping"
        case list() | tuple():
            return f"a list of {counted(len(value), 'member')}" if value else "an empty list"
        case _:
            return str(value)[:_LONGEST_SHOWN]


def counted(number: object, noun: str) -> str:
    """A number of things, such as `2 members`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
