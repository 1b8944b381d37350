"""Whole pages of laptops and clusters: one HTML document each, which loads nothing."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from snaploom.errors import ArgumentInvalid
from snaploom.installed import VERSION
from snaploom.localfiles import open_plain, write_file
from snaploom.models.common import EpochNanos, format_instant
from snaploom.models.findings import Finding
from snaploom.plugins.site.pagedata import (
    NOTHING,
    Html,
    OutputPage,
    counted,
    filtered,
    join,
    moment,
    number,
    size,
    table,
    tag,
    text,
)
from snaploom.plugins.site.sections import Section, findings_list, sections_of, state_of, tiles
from snaploom.plugins.site.statuspage import (
    StatusPage,
    status_moment,
    status_sections,
    status_tiles,
)

# Whole pages: one HTML document each, which loads nothing and runs no script but its own.

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
    about = (
        tag("p", page.description) if page.description else NOTHING,
        tag("p", f"Owner: {page.owner}", class_="quiet") if page.owner else NOTHING,
        written(page.now),
        tiles(page),
    )
    return _of_one(page.name, _state(page), about, sections_of(page), home, version)


def _of_one(
    title: str,
    state: Html,
    about: Iterable[Html],
    sections: Sequence[Section],
    home: str,
    version: str,
) -> str:
    back = tag("p", tag("a", "All outputs", href=home), class_="home") if home else NOTHING
    header = tag("header", back, tag("h1", title, " ", state), *about)
    body = join(map(section_element, sections))
    return whole_document(title, header, navigation(sections), body, version)


def overview_document(
    pages: Sequence[tuple[OutputPage, str]], now: EpochNanos, *, version: str = ""
) -> str:
    """The page of all outputs."""
    ordered = sorted(pages, key=lambda one: (_order(one[0]), one[0].name))
    columns = (
        "output", "state", "newest snapshot", "rows", "snapshots", "size", "due", "gaps",
        "findings", "owner",
    )  # fmt: skip
    rows = [_line(page, address) for page, address in ordered]
    listed = table("Outputs", columns, rows, numbers=(3, 4, 5, 6, 7, 8), name="outputs-table")
    parts = (
        filtered("outputs-table", "name or owner"),
        listed or tag("p", "None is declared."),
    )
    stale = sum(state_of(page)[1] == "bad" for page, _ in pages)
    about = f"{counted(len(pages), 'output')}, {number(stale)} of them stale or unreadable"
    return _of_all(parts, about, now, version)


def _of_all(parts: Iterable[Html], about: str, now: EpochNanos, version: str) -> str:
    heading = tag("h2", "Outputs", id="outputs-heading")
    body = tag("section", heading, *parts, id="outputs", aria_labelledby="outputs-heading")
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
        "–" if page.due is None else number(len(page.due.times)),
        tag("span", number(gaps), class_="warn" if gaps else None),
        tag("span", number(len(page.findings)), class_="bad" if page.errors else None),
        page.owner,
    )


def written(now: EpochNanos) -> Html:
    """Return when a page was made, and by which version."""
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
    return files("snaploom.plugins.site").joinpath("assets", name).read_text("utf-8")


@cache
def _hash(content: str) -> str:
    return f"sha256-{b64encode(sha256(content.encode()).digest()).decode()}"


def is_ours(document: str) -> bool:
    """Whether a document is a page that Snaploom wrote."""
    return f'<meta name="generator" content="{text(GENERATOR)} ' in document


# Whole pages of a cluster: one of each output, and one of all that a user may see.

MOST_OUTPUTS = 2_000
"""Outputs that the page of all of them lists; of more, those that need a look. It has 0.3 MB."""


def status_document(page: StatusPage, *, home: str, version: str) -> str:
    """The page of one output.

    An open page compares `version`; `home` is the address of the page with all outputs.
    """
    word, mood = page.state
    state = tag("span", word, class_=f"state {mood}")
    about = (written(page.now), status_tiles(page))
    return _of_one(page.title, state, about, status_sections(page), home, version)


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
    ordered = sorted(
        pages, key=lambda one: ({"bad": 0, "warn": 1}.get(one[0].state[1], 2), one[0].title)
    )
    rows = [_status_line(page, address) for page, address in ordered[:MOST_OUTPUTS]]
    more = len(ordered) - len(rows)
    columns = ("output", "state", "newest snapshot", "rows", "snapshots", "last run")
    parts = (
        table("Outputs", columns, rows, numbers=(3, 4))
        or tag("p", "You may list the outputs of no namespace that has any."),
        tag("p", f"and {more:,} more", class_="quiet") if more > 0 else NOTHING,
        tag("p", "Written by a newer Snaploom, and not shown: ", ", ".join(unread), class_="warn")
        if unread
        else NOTHING,
    )
    bad = sum(page.state[1] == "bad" for page, _ in pages)
    about = f"{counted(len(pages), 'output')}, {number(bad)} of them stalled or stale"
    return _of_all(parts, about, now, version)


def _status_line(page: StatusPage, address: str) -> Sequence[str | Html]:
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


# Writes pages as files: `index.html`, and one file an output where there are several.

INDEX = "index.html"
OUTPUTS = "outputs"
"""Folder of the pages of several outputs."""
_LOOKED_AT = 4_096
"""Bytes at the beginning of a file that show whose it is."""


def site_of(pages: Sequence[OutputPage], now: EpochNanos, *, version: str = "") -> dict[str, str]:
    """The files of a site by their path: names of outputs are such that they name files.

    The page of a single output is the whole site. An open page compares `version`, which is empty
    for files.
    """
    if len(pages) == 1:
        return {INDEX: output_document(pages[0], version=version)}
    addressed = [(page, f"{OUTPUTS}/{page.name}.html") for page in pages]
    return {
        INDEX: overview_document(addressed, now, version=version),
        **{
            address: output_document(page, home=f"../{INDEX}", version=version)
            for page, address in addressed
        },
    }


def write_site(folder: Path, site: dict[str, str]) -> tuple[Path, ...]:
    """Write the files of a site; each is there as a whole or as it was.

    The folder is made where it is missing; `site` has the documents by path.

    Raises:
        ArgumentInvalid: a file of another origin is in the way; nothing is written.
        OSError: the file system refuses.
    """
    for path in site:
        _refuse_other(folder / path)
    written = []
    for path, document in site.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        write_file(target, document)
        written.append(target)
    return tuple(written)


def _refuse_other(path: Path) -> None:
    try:
        with open_plain(path) as stream:
            beginning = stream.read(_LOOKED_AT).decode("utf-8", errors="replace")
    except FileNotFoundError:
        return
    if not is_ours(beginning):
        raise ArgumentInvalid(
            "this file is no page of Snaploom, and would be overwritten",
            path="--to",
            found=str(path),
            expected="a new folder, or one that `snaploom page` has written",
            hint="name another folder, or move the file away",
        )
