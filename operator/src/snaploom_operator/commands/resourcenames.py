"""Parses resource names of the command line: `ods/flights`, `OutputDataset/flights`, `flights`."""

from __future__ import annotations

from dataclasses import dataclass

from snaploom.loading.nearmisses import did_you_mean
from snaploom.models.codes import make_finding
from snaploom.models.finding import InvalidDeclarations
from snaploom.models.kinds import KINDS, Kind

RUNNABLE = ("OutputDataset", "SkippingIndex")
"""Kinds that have runs."""


@dataclass(frozen=True)
class Named:
    """The kind and name of a resource."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.kind.name}/{self.name}"


def parse_name(text: str) -> Named:
    """Parse `KIND/NAME`, where KIND is a plural, singular or short name.

    A name without a kind is an OutputDataset.

    Raises:
        InvalidDeclarations: there is no such kind, or no name.
    """
    kind_text, slash, name = text.partition("/")
    if not slash:
        kind_text, name = "OutputDataset", text
    wanted = kind_text.lower()
    kinds = (kind for kind in KINDS if wanted in (kind.singular, kind.plural, kind.short_name))
    kind = next(kinds, None)
    if kind is not None and name:
        return Named(kind, name)
    finding = make_finding(
        "SL191",
        "unknown resource kind or missing name",
        path="KIND/NAME",
        found=text,
        expected="KIND/NAME, or the name of an OutputDataset; kinds: "
        + ", ".join(f"{kind.name} ({kind.short_name})" for kind in KINDS),
        hint=did_you_mean(kind_text, [kind.name for kind in KINDS]),
    )
    raise InvalidDeclarations([finding])


def parse_runnable(text: str) -> Named:
    """Parse `KIND/NAME` of a kind with runs.

    Raises:
        InvalidDeclarations: there is no such kind, it has no runs, or there is no name.
    """
    named = parse_name(text)
    if named.kind.name in RUNNABLE:
        return named
    finding = make_finding(
        "SL191",
        f"a {named.kind.name} has no runs of its own",
        path="KIND/NAME",
        found=text,
        expected=" or ".join(f"{kind}/NAME" for kind in RUNNABLE),
        hint="name the output or the index that uses it; `snaploom status` lists them",
    )
    raise InvalidDeclarations([finding])
