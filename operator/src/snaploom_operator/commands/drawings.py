"""Drawings in the tree of `snaploom status`: as wide as the terminal, in ASCII where it must be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from snaploom.visibletext import in_ascii, visible_lines


@dataclass(frozen=True)
class Drawing:
    """A heading and lines below it; what is wider than the terminal is cut."""

    heading: str
    draw: Callable[[int], str]
    """The lines, from the columns that there are."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw."""
        drawn = visible_lines(f"{self.heading}\n{self.draw(options.max_width)}")
        yield Text(
            in_ascii(drawn) if options.ascii_only else drawn, no_wrap=True, overflow="ellipsis"
        )
