"""The drawing of a join tree: nothing covers anything, and everything is on the page."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

from snaploom.plan.drawings import (
    BEND,
    CARD_HEIGHT,
    CARD_WIDTH,
    LABEL_GAP,
    Line,
    Picture,
    picture_of,
    to_svg,
)
from snaploom.plan.plan import plan_offline
from snaploom.run.declarations import read_declarations

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
Box = tuple[float, float, float, float]


def drawn(example: str, output: str) -> Picture:
    bundle = read_declarations([EXAMPLES / example]).bundle(output)
    plan = plan_offline(bundle)
    return picture_of(bundle, plan.graph, plan.tree)


PICTURES = (drawn("flights", "flights-wide"), drawn("customer", "customer-wide"))


def label_box(line: Line) -> Box:
    right = line.child.x - LABEL_GAP
    middle = line.child.y + CARD_HEIGHT / 2
    return right - line.label_width, middle - 17, right, middle + 17


def boxes(picture: Picture) -> list[Box]:
    cards = [(c.x, c.y, c.x + CARD_WIDTH, c.y + CARD_HEIGHT) for c in picture.cards]
    return cards + [label_box(line) for line in picture.lines if line.is_chosen]


def overlap(one: Box, other: Box) -> bool:
    apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
    return not apart


def test_no_card_or_label_covers_another() -> None:
    for picture in PICTURES:
        pairs = combinations(boxes(picture), 2)
        assert not [pair for pair in pairs if overlap(*pair)]


def test_labels_are_behind_the_bend_of_their_line() -> None:
    for picture in PICTURES:
        for line in picture.lines:
            if line.is_chosen:
                assert label_box(line)[0] >= line.parent.x + CARD_WIDTH + BEND


def test_everything_is_on_the_page() -> None:
    for picture in PICTURES:
        for left, top, right, bottom in boxes(picture):
            assert left >= 0
            assert top >= 0
            assert right <= picture.width
            assert bottom <= picture.height


def test_svg_is_xml_and_has_every_name_and_key() -> None:
    root = ElementTree.fromstring(to_svg(PICTURES[1]))
    texts = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"customer_address", "customer-id", "customer_id", "grouped by customer_id"} <= texts
