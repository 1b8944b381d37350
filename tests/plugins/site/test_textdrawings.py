"""The drawings of a page as lines of text."""

from pathlib import Path

import pytest
from support.site.histories import DAY, START

from snaploom.models.common import EpochNanos
from snaploom.models.report import JoinMeasure
from snaploom.plugins.site.drawings import FEWEST_CELLS, WIDEST, timeline_drawing, tree_drawing
from snaploom.plugins.site.pagedata import Node, OutputPage
from snaploom.plugins.site.pages import Clock, declared_pages
from snaploom.plugins.site.timeline import Lane, lanes_of, spans_of
from snaploom.run.declarations import read_declarations

DAYS = [START + number * DAY for number in range(10)]


@pytest.fixture(scope="module")
def page(eventful: Path) -> OutputPage:
    clock = Clock(EpochNanos(START + 90 * DAY))
    (found,) = declared_pages(read_declarations([eventful]), ["orders-wide"], clock)
    return found


def node(number: int, name: str, parent: str = "", **facts: object) -> Node:
    return Node(number, name, name or "orders", parent, f"{name}-id" if name else "", **facts)  # type: ignore[arg-type]


def measure(child: str, matched: int, rows: int) -> JoinMeasure:
    return JoinMeasure(child=child, in_=rows, out=rows, matched=matched, null_keys=0)


def test_tree_has_the_match_rate_of_each_join() -> None:
    drawn = tree_drawing([
        node(0, ""),
        node(1, "customer", measure=measure("customer", 2, 3)),
        node(2, "region", "customer", measure=measure("region", 4, 4), group_by=("country",)),
        node(3, "product", left_out="SNAPSHOT_MISSING"),
    ])  # fmt: skip
    assert drawn.splitlines() == [
        "orders",
        "├── customer    by customer-id, 66.7% matched",
        "│   └── region  by region-id, grouped by country, 100% matched",
        "└── product     by product-id, left out: SNAPSHOT_MISSING",
    ]


def test_timeline_marks_what_there_is_and_leaves_gaps() -> None:
    times = [time for place, time in enumerate(DAYS) if place != 4]
    lanes = (
        Lane("published", "published", 9, spans_of(times, DAY)),
        Lane("missing", "gaps", 1, ((DAYS[4], DAYS[5]),)),
    )
    assert timeline_drawing(lanes, 38).splitlines() == [
        "published  9  ██████████··████████████",
        "gaps       1  ·········███············",
        "              2024-01-01    2024-01-11",
    ]


@pytest.mark.parametrize("width", [0, 40, WIDEST, 400])
def test_timeline_fits_the_width_within_bounds(page: OutputPage, width: int) -> None:
    lines = timeline_drawing(lanes_of(page), width).splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["published", "gaps"]
    longest = max(map(len, lines))
    assert longest <= max(min(width, WIDEST), FEWEST_CELLS + 20)
    assert longest == len(lines[0])


def test_nothing_has_no_timeline() -> None:
    assert timeline_drawing((), 80) == ""
