"""Tables and lists for notebooks: plain HTML that follows the colours of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from snaploom.confidential import visible_lines

_CELL = "padding:2px 12px 2px 0;text-align:left;vertical-align:top;white-space:pre-wrap"


def text(value: object) -> str:
    """Text from anywhere, safe inside HTML."""
    return escape(visible_lines(str(value)))


def heading(value: object) -> str:
    """A heading."""
    return f'<div style="font-weight:600;margin:6px 0">{text(value)}</div>'


def line(value: object) -> str:
    """A paragraph of one line."""
    return f"<div>{text(value)}</div>"


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; empty where it has no rows."""
    listed = list(rows)
    if not listed:
        return ""
    head = "".join(f'<th scope="col" style="{_CELL}">{text(name)}</th>' for name in columns)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{text(cell)}</td>' for cell in row) + "</tr>"
        for row in listed
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
