"""The page about security: what each table of `tests/hostile/tables` promises, and what remains."""

from __future__ import annotations

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
        promises=table(["of", "promise"], [[area.area, area.promise] for area in listed]),
        remains=table(["what", "what ends it"], remains),
    )
