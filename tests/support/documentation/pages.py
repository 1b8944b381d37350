"""What the pages of the documentation contain: links, headings and fenced blocks."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from support.documentation.examples import REPOSITORY

DOCS = REPOSITORY / "docs"
_FENCE = re.compile(r"^( *)```(\S*)(?: title=\"([^\"]+)\")?$")
"""Also of a block in a list, which is indented."""
_CODE = re.compile(r"`[^`]*`(?!\])")
"""Inline code, but not when it is the text of a link."""
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its title, and its lines."""

    language: str
    title: str
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


@dataclass(frozen=True)
class Command:
    """A command of a `console` block, and the lines that it should print."""

    text: str
    expected: tuple[str, ...]


def every_page() -> list[Path]:
    """README, changelog, CONTRIBUTING, pages below `docs/`, and READMEs of examples."""
    return [
        REPOSITORY / "README.md",
        REPOSITORY / "CHANGELOG.md",
        REPOSITORY / "CONTRIBUTING.md",
        *sorted(DOCS.rglob("*.md")),
        *sorted((REPOSITORY / "examples").glob("*/README.md")),
    ]


def blocks_of(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    opened: tuple[str, str] | None = None
    indentation, lines = "", list[str]()
    for line in page.read_text("utf-8").splitlines():
        fence = _FENCE.match(line)
        if opened is None and fence:
            opened, indentation, lines = (fence[2], fence[3] or ""), fence[1], []
        elif opened is not None and line == f"{indentation}```":
            yield Block(*opened, tuple(lines))
            opened = None
        else:
            lines.append(line.removeprefix(indentation))
    assert opened is None, f"{page}: a block is not closed"


def commands_of(block: Block) -> Iterator[Command]:
    """`$ ` begins a command, `> ` continues it, anything else is what it prints."""
    text, expected = "", []
    for line in block.lines:
        if line.startswith("$ "):
            if text:
                yield Command(text, tuple(expected))
            text, expected = line.removeprefix("$ "), []
        elif line.startswith("> ") and not expected:
            text += "\n" + line.removeprefix("> ")
        else:
            expected.append(line)
    if text:
        yield Command(text, tuple(expected))


def pattern_of(expected: tuple[str, ...]) -> re.Pattern[str]:
    """Lines as a pattern: `...` matches anything in a line, a line of it any lines."""
    parts = [
        r"(?:.*\n)*?" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + " *\n"
        for line in expected
    ]
    return re.compile("".join(parts))


def links_of(page: Path) -> Iterator[str]:
    """Targets of links and pictures, outside fenced blocks."""
    inside = False
    for line in page.read_text("utf-8").splitlines():
        if line.startswith("```"):
            inside = not inside
        elif not inside:
            yield from _LINK.findall(_CODE.sub("", line))


def anchors_of(page: Path) -> set[str]:
    """Anchors of the headings, as git hosts make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
