"""Whole pages of a cluster: one of each output, and one of all that a user may see."""

from __future__ import annotations

from collections.abc import Sequence

from snaploom.models.times import EpochNanos
from snaploom.site.document import navigation, section_element, whole_document, written
from snaploom.site.markup import NOTHING, Html, join, table, tag
from snaploom.site.quantities import counted, number
from snaploom.site.statuspage import StatusPage, status_moment, status_sections, status_tiles

MOST_OUTPUTS = 2_000
"""Outputs that the page of all of them lists; of more, those that need a look. It has 0.3 MB."""


def status_document(page: StatusPage, *, home: str, version: str) -> str:
    """The page of one output.

    An open page compares `version`; `home` is the address of the page with all outputs.
    """
    sections = status_sections(page)
    word, mood = page.state
    header = tag(
        "header",
        tag("p", tag("a", "All outputs", href=home), class_="home"),
        tag("h1", page.title, " ", tag("span", word, class_=f"state {mood}")),
        written(page.now),
        status_tiles(page),
    )
    body = join(map(section_element, sections))
    return whole_document(page.title, header, navigation(sections), body, version)


def statuses_document(
    pages: Sequence[tuple[StatusPage, str]],
    now: EpochNanos,
    *,
    version: str,
    unread: Sequence[str] = (),
) -> str:
    """The page of all outputs that a user may see.

    An open page compares `version`; `unread` are outputs that cannot be parsed.
    """
    ordered = sorted(pages, key=lambda one: (_order(one[0]), one[0].title))
    rows = [_line(page, address) for page, address in ordered[:MOST_OUTPUTS]]
    more = len(ordered) - len(rows)
    columns = ("output", "state", "newest snapshot", "rows", "snapshots", "last run")
    body = tag(
        "section",
        tag("h2", "Outputs", id="outputs-heading"),
        table("Outputs", columns, rows, numbers=(3, 4))
        or tag("p", "You may list the outputs of no namespace that has any."),
        tag("p", f"and {more:,} more", class_="quiet") if more > 0 else NOTHING,
        tag("p", "Written by a newer Snaploom, and not shown: ", ", ".join(unread), class_="warn")
        if unread
        else NOTHING,
        id="outputs",
        aria_labelledby="outputs-heading",
    )
    bad = sum(page.state[1] == "bad" for page, _ in pages)
    about = f"{counted(len(pages), 'output')}, {number(bad)} of them stalled or stale"
    header = tag("header", tag("h1", "Outputs"), tag("p", about), written(now))
    return whole_document("Outputs", header, NOTHING, body, version)


def _order(page: StatusPage) -> int:
    return {"bad": 0, "warn": 1}.get(page.state[1], 2)


def _line(page: StatusPage, address: str) -> Sequence[str | Html]:
    status, (word, mood) = page.status, page.state
    latest, last = status.latest_snapshot, status.last_run
    return (
        tag("a", page.title, href=address),
        tag("span", word, class_=f"state {mood}"),
        status_moment(latest.time) if latest else "–",
        number(latest.rows) if latest else "–",
        number(status.snapshot_count) if status.snapshot_count is not None else "–",
        last.phase.value if last else "–",
    )
