"""HTML by construction: everything not marked as HTML is text, and is escaped inside it.

Names, messages and values come from declarations and folders of others. No attribute here takes
script or style, and none takes an address that is not a place in the same page or site.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape

from pydantic import JsonValue

from snaploom.visibletext import json_visible, visible_lines

LONGEST_TEXT = 2_000
"""Characters of one text on a page: a longer one is unreadable, and may be an attack."""
_VOID = frozenset({"meta", "input", "path"})
"""Elements that hold nothing; the slash that ends them is needed in SVG, and harmless in HTML."""

Attribute = str | int | float | bool | None


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


NOTHING = Html("")


def text(value: object) -> Html:
    """Text from anywhere, safe inside HTML: cut where it is very long, controls made visible."""
    plain = str(value)
    if len(plain) > LONGEST_TEXT:
        plain = f"{plain[:LONGEST_TEXT]}… ({len(plain):,} characters)"
    return Html(escape(visible_lines(plain)))


def tag(element: str, *children: str | Html, **attributes: Attribute) -> Html:
    """An element.

    Children that are not `Html` are text. Attributes are named with `_` for `-` and `class_` for
    `class`; None and False leave one out, and `Html` stands as it is.
    """
    opened = f"<{element}{''.join(map(_attribute, attributes, attributes.values()))}"
    if element in _VOID:
        return Html(f"{opened}/>")
    return Html(f"{opened}>{join(children)}</{element}>")


def join(children: Iterable[str | Html], between: str | Html = NOTHING) -> Html:
    """Pieces one behind the other."""
    safe = (child if isinstance(child, Html) else text(child) for child in children)
    return Html((between if isinstance(between, Html) else text(between)).join(safe))


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    return f' {name}="{value if isinstance(value, Html) else text(value)}"'


def table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Html]],
    *,
    numbers: Iterable[int] = (),
    name: str | None = None,
) -> Html:
    """A table that scrolls sideways where it is too wide; nothing where it has no rows.

    The first cell of each row is its heading. The caption is for readers that do not see the
    heading; `numbers` are the places of columns of numbers, and `name` is the table's id.
    """
    right = frozenset(numbers)
    body = [
        tag(
            "tr",
            *(
                tag(
                    "td" if place else "th",
                    cell,
                    class_="number" if place in right else None,
                    scope=None if place else "row",
                )
                for place, cell in enumerate(row)
            ),
        )
        for row in rows
    ]
    if not body:
        return NOTHING
    head = (
        tag("th", label, scope="col", class_="number" if place in right else None)
        for place, label in enumerate(columns)
    )
    whole = tag(
        "table",
        tag("caption", caption, class_="unseen"),
        tag("thead", tag("tr", *head)),
        tag("tbody", *body),
        id=name,
    )
    return tag(
        "div", whole, class_="wide", tabindex=0, role="region", aria_label=f"Table: {caption}"
    )


def data_block(name: str, document: JsonValue) -> Html:
    """Data for the page's script: JSON that no parser of HTML takes for anything else."""
    written = json_visible(json.dumps(document, separators=(",", ":"), ensure_ascii=False))
    for sign in "<>&":
        written = written.replace(sign, f"\\u{ord(sign):04x}")
    return Html(f'<script type="application/json" id="{text(name)}">{written}</script>')
