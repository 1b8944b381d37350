"""The picture of the README: what `snaploom graph` draws of the flights example."""

from __future__ import annotations

from pathlib import Path

from snaploom.plan.drawings import picture_of, to_svg
from snaploom.plan.plan import plan_offline
from snaploom.run.declarations import read_declarations

EXAMPLE = Path(__file__).parents[2] / "examples" / "flights"
OUTPUT = "flights-wide"


def flights_picture() -> str:
    """`snaploom graph flights-wide -f examples/flights -o svg`."""
    bundle = read_declarations([EXAMPLE]).bundle(OUTPUT)
    plan = plan_offline(bundle)
    return to_svg(picture_of(bundle, plan.graph, plan.tree))
