"""All regular expressions of one object, judged together: they share a limit.

Verdicts are plain data, so that a process can judge for another: compiling holds Python's lock, for
a quarter of a second at worst.
"""

from __future__ import annotations

from dataclasses import dataclass

from snaploom.planning.regexes import RegexInvalid, size_of

MAX_INSTRUCTIONS = 1_000_000
"""Programs of all patterns of an object together, or the work of reading them where that is more:
several thousand ordinary ones. Compiling so many instructions takes half a second (measured)."""
MOST_SECONDS = 2.0
"""Processor time that a text may take; the largest that pass the scan take a quarter of a second.
Time of the processor, not of the clock: a busy machine refuses nothing."""
MOST_MEMORY = 1024 * 1024 * 1024
"""Bytes of address space; the largest texts that pass the scan take some 150 MB."""


@dataclass(frozen=True, slots=True)
class RegexList:
    """The regular expressions of one object, in order."""

    patterns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RegexFault:
    """The reason why a regular expression is refused, and the replacement to write."""

    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class RegexVerdict:
    """Facts about the regular expressions of one object."""

    judged: tuple[int | RegexFault, ...]
    """Of each the number of its groups, or its fault; fewer than there are if the rest was not
    judged."""
    unjudged: RegexFault | None = None
    """Why the rest was not judged."""


_SIMPLER = "give smaller counts in { }, fewer classes such as \\w, or divide the resource"
TOO_LARGE_TOGETHER = RegexFault(
    f"the regular expressions before this one are too large together, with more than "
    f"{MAX_INSTRUCTIONS:,} instructions; it was not judged, nor those after it",
    _SIMPLER,
)
REGEXES_TOO_LONG = RegexFault(
    f"the regular expressions of this resource take more than {MOST_SECONDS:g} s to analyse",
    _SIMPLER,
)
REGEXES_TOO_LARGE = RegexFault(
    f"the regular expressions of this resource take more than {MOST_MEMORY >> 20:,} MiB to analyse",
    _SIMPLER,
)


def judge_regexes(regexes: RegexList) -> RegexVerdict:
    """The verdict about each, until they are too large together; never an exception."""
    judged: list[int | RegexFault] = []
    instructions = 0
    for pattern in regexes.patterns:
        if instructions > MAX_INSTRUCTIONS:
            return RegexVerdict(tuple(judged), TOO_LARGE_TOGETHER)
        try:
            size = size_of(pattern)
        except RegexInvalid as error:
            instructions += error.instructions
            judged.append(RegexFault(error.fault, error.instead))
        else:
            instructions += size.instructions
            judged.append(size.groups)
    return RegexVerdict(tuple(judged))
