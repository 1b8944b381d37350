"""Whole pages: one HTML document each, which loads nothing and runs no script but its own.

The policy in each page allows the one style and the one script that are in it, by their hashes, and
nothing else: were text of others to become an element, it could neither run nor load anything.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files

from snaploom.models.finding import Finding
from snaploom.models.times import EpochNanos, format_instant
from snaploom.site.markup import NOTHING, Html, join, table, tag, text
from snaploom.site.pagedata import OutputPage
from snaploom.site.quantities import counted, moment, number, size
from snaploom.site.sections import Section, findings_list, sections_of, state_of, tiles
from snaploom.version import VERSION

GENERATOR = "snaploom"
"""The generator named in each page: only files that name it are overwritten."""
PAGE_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers that a server sends with a page, wherever it runs."""
VERSION_HEADER = "X-Snaploom-Version"
"""Names the version of the page, for an open page that asks whether there is a newer one."""


def output_document(page: OutputPage, *, home: str = "", version: str = "") -> str:
    """The page of one output.

    `home` is the address of the page with all outputs, empty without one. `serve` compares
    `version`; it is empty for a page that is a file.
    """
    sections = sections_of(page)
    header = tag(
        "header",
        tag("p", tag("a", "All outputs", href=home), class_="home") if home else NOTHING,
        tag("h1", page.name, " ", _state(page)),
        written(page.now),
        tiles(page),
    )
    return whole_document(
        page.name, header, navigation(sections), join(map(section_element, sections)), version
    )


def overview_document(
    pages: Sequence[tuple[OutputPage, str]], now: EpochNanos, *, version: str = ""
) -> str:
    """The page of all outputs."""
    ordered = sorted(pages, key=lambda one: (_order(one[0]), one[0].name))
    rows = [_line(page, address) for page, address in ordered]
    columns = (
        "output", "state", "newest snapshot", "rows", "snapshots", "size", "gaps", "findings",
    )  # fmt: skip
    body = tag(
        "section",
        tag("h2", "Outputs", id="outputs-heading"),
        table("Outputs", columns, rows, numbers=(3, 4, 5, 6, 7)) or tag("p", "None is declared."),
        id="outputs",
        aria_labelledby="outputs-heading",
    )
    stale = sum(state_of(page)[1] == "bad" for page, _ in pages)
    about = f"{counted(len(pages), 'output')}, {number(stale)} of them stale or unreadable"
    header = tag("header", tag("h1", "Outputs"), tag("p", about), written(now))
    return whole_document("Outputs", header, NOTHING, body, version)


def _state(page: OutputPage) -> Html:
    """The state in a word; the page's script turns it when the output becomes stale."""
    word, mood = state_of(page)
    expires = page.freshness.expires if page.is_present else None
    return tag(
        "span",
        word,
        class_=f"state {mood}",
        data_expires=None if expires is None else expires // 1_000_000,
    )


def problem_document(title: str, findings: Sequence[Finding], now: EpochNanos) -> str:
    """A page of errors, in place of those that cannot be drawn."""
    section = Section("findings", "Findings", findings_list(findings), f"{len(findings):,}")
    header = tag("header", tag("h1", title), written(now))
    return whole_document(title, header, NOTHING, section_element(section), "problem")


def _order(page: OutputPage) -> int:
    return {"bad": 0, "warn": 1}.get(state_of(page)[1], 2 if page.findings or page.gaps else 3)


def _line(page: OutputPage, address: str) -> Sequence[str | Html]:
    latest = page.newest
    gaps = sum(gap.intervals for gap in page.gaps)
    return (
        tag("a", page.name, href=address),
        _state(page),
        moment(latest.time if latest else None),
        number(latest.rows) if latest else "–",
        number(len(page.snapshots)),
        size(page.total_bytes),
        tag("span", number(gaps), class_="warn" if gaps else None),
        tag("span", number(len(page.findings)), class_="bad" if page.errors else None),
    )


def written(now: EpochNanos) -> Html:
    """When a page was made, and by which version."""
    time = format_instant(EpochNanos(now - now % 1_000_000_000))
    shown = tag("time", time, datetime=time)
    return tag("p", "As of ", shown, f", by Snaploom {VERSION}. Times are UTC.", class_="quiet")


def navigation(sections: Sequence[Section]) -> Html:
    """Links to the sections of a page."""
    links = (tag("li", tag("a", section.title, href=f"#{section.name}")) for section in sections)
    return tag("nav", tag("ul", *links), aria_label="Sections")


def section_element(section: Section) -> Html:
    """A section with its heading."""
    heading = f"{section.name}-heading"
    note = tag("span", section.note, class_="count") if section.note else NOTHING
    return tag(
        "section",
        tag("h2", section.title, " ", note, id=heading),
        section.body,
        id=section.name,
        aria_labelledby=heading,
    )


def whole_document(title: str, header: Html, links: Html, body: Html, version: str) -> str:
    """A document with our style, our script, and the policy that allows nothing else."""
    style, script = _asset("page.css"), _asset("page.js")
    # A page that is served asks its own server whether there is anything new.
    connections = "connect-src 'self'" if version else "connect-src 'none'"
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        f"{connections}; base-uri 'none'; form-action 'none'"
    )
    head = join([
        Html('<meta charset="utf-8">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="generator", content=f"{GENERATOR} {VERSION}"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="snaploom-version", content=version) if version else NOTHING,
        tag("title", f"{title} · Snaploom"),
        Html(f"<style>{style}</style>"),
    ])  # fmt: skip
    content = tag(
        "body",
        tag("a", "Skip to the content", href="#content", class_="skip"),
        header,
        links,
        tag("main", body, id="content", tabindex=-1),
        tag("div", id="tip", role="presentation", hidden=True),
        Html(f"<script>{script}</script>"),
    )
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>{content}</html>\n'


@cache
def _asset(name: str) -> str:
    """A file that is in the package; written by hand, so that it has no licence but ours."""
    return files("snaploom.site").joinpath("assets", name).read_text("utf-8")


@cache
def _hash(content: str) -> str:
    return f"sha256-{b64encode(sha256(content.encode()).digest()).decode()}"


def is_ours(document: str) -> bool:
    """Whether a document is a page that Snaploom wrote."""
    return f'<meta name="generator" content="{text(GENERATOR)} ' in document
