"""Follows every link, picture and script inside of a site, as a browser would.

`python .ci/sitecheck.py SITE`. Prints a line `page: link: what is wrong` for each that leads
nowhere, and for each that a page would fetch from another host. Ends with 0 when there is none, 1
otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

FETCHED = {"img": ("src",), "script": ("src",), "link": ("href",), "source": ("src",)}
"""What a browser fetches to show a page, by tag."""
FOLLOWED = {**FETCHED, "a": ("href",)}


@dataclass
class Page(HTMLParser):
    """Links of a page, and what can be linked to in it."""

    links: list[tuple[str, str]] = field(default_factory=list)
    """Tag and target."""
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect."""
        values = {name: value for name, value in attrs if value}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "link" and values.get("rel") in ("canonical", "prev", "next", "alternate"):
            return
        self.links += [(tag, values[name]) for name in FOLLOWED.get(tag, ()) if name in values]


@cache
def read(path: Path) -> Page:
    """A page of the site."""
    page = Page()
    page.feed(path.read_text("utf-8"))
    return page


def faults(site: Path) -> Iterator[str]:
    """Every link that leads nowhere, and all that other hosts would have to serve."""
    for path in sorted(site.rglob("*.html")):
        for tag, link in read(path).links:
            if message := _fault(site, path, tag, link):
                yield f"{path.relative_to(site)}: {link}: {message}"


def _fault(site: Path, page: Path, tag: str, link: str) -> str:
    if urlsplit(link).scheme or link.startswith("//"):
        is_fetched = tag in FETCHED and not link.startswith("data:")
        return "comes from another host; bring it along" if is_fetched else ""
    target, anchor = urldefrag(link)
    place = unquote(urlsplit(target).path)
    path = page if not place else site / place[1:] if place[0] == "/" else page.parent / place
    path = path / "index.html" if path.is_dir() else path
    if not path.is_file():
        return "there is no such file"
    if anchor and path.suffix == ".html" and unquote(anchor) not in read(path).anchors:
        return f"{path.name} has no {anchor}"
    return ""


if __name__ == "__main__":
    found = list(faults(Path(sys.argv[1])))
    for line in found:
        print(line, file=sys.stderr)  # noqa: T201
    sys.exit(1 if found else 0)
