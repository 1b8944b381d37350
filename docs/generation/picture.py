"""The picture of the README: what `snaploom graph` draws of the flights example."""

from __future__ import annotations

from pathlib import Path

from snaploom.jobs.declarations.declarationfiles import read_declarations
from snaploom.planning.picture import picture_of
from snaploom.planning.plan import plan_offline
from snaploom.planning.svg import to_svg

EXAMPLE = Path(__file__).parents[2] / "examples" / "flights"
OUTPUT = "flights-wide"


def flights_picture() -> str:
    """`snaploom graph flights-wide -f examples/flights -o svg`."""
    bundle = read_declarations([EXAMPLE]).bundle(OUTPUT)
    plan = plan_offline(bundle)
    return to_svg(picture_of(bundle, plan.graph, plan.tree))
