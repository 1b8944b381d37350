"""The page about security: every entry point, every attack, and the test of each pair.

It is made of the tables of `tests/hostile/tables`, so that every promise has its test.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict

from generation.markdown import NOTE, table

PAGE = "operating/security.md"
"""Below `docs/`."""
TABLES = Path(__file__).parents[2] / "tests/hostile/tables"
TEXT = Path(__file__).with_name("security.md.in")
"""What people write of the page, with the places of what is generated."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Cell(_Part):
    """One entry point and one attack."""

    entry_point: str
    attack: str
    stands: str = ""
    """What prevents it."""
    tests: tuple[str, ...] = ()
    """Tests that prove it."""
    reason: str = ""
    """Why the attack cannot be, where there is no test."""


class Remains(_Part):
    """What an attacker can still do."""

    what: str
    closes: str
    """The setting that ends it."""


class Area(_Part):
    """One table."""

    area: str
    order: int
    promise: str
    entry_points: dict[str, str]
    attacks: dict[str, str]
    cells: tuple[Cell, ...]
    remains: tuple[Remains, ...] = ()


@dataclass(frozen=True)
class _Row:
    """A row of the page: cells of several entry points that have the same text."""

    attack: str
    stands: str
    proof: str


def areas() -> list[Area]:
    """The tables, in the order of the page."""
    found = [
        Area.model_validate(yaml.safe_load(path.read_text("utf-8")))
        for path in sorted(TABLES.glob("*.yaml"))
    ]
    return sorted(found, key=lambda area: (area.order, area.area))


def security_page() -> str:
    """The page."""
    listed = areas()
    remains = [[each.what, each.closes] for area in listed for each in area.remains]
    return NOTE + TEXT.read_text("utf-8").format(
        promises="\n".join(_section(area) for area in listed),
        remains=table(["what", "what ends it"], remains),
    )


def _section(area: Area) -> str:
    entry_points = [[f"**{name}**", text] for name, text in area.entry_points.items()]
    rows: dict[_Row, list[str]] = defaultdict(list)
    for cell in area.cells:
        proof = ", ".join(f"`{test}`" for test in cell.tests) or "not possible"
        rows[_Row(cell.attack, cell.stands or cell.reason, proof)].append(cell.entry_point)
    order = {name: place for place, name in enumerate(area.attacks)}
    lines = [
        [area.attacks[row.attack], _named(names, area), row.stands, row.proof]
        for row, names in sorted(rows.items(), key=lambda item: order[item[0].attack])
    ]
    return "\n".join(
        [
            f"### {area.area}\n",
            f"{area.promise}\n",
            table(["entry point", "what it is"], entry_points),
            table(["attack", "entry points", "what prevents it", "proved by"], lines),
        ]
    )


def _named(names: list[str], area: Area) -> str:
    return "all" if set(names) == set(area.entry_points) else ", ".join(names)
