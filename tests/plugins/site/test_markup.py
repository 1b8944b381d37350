"""Text of others never becomes HTML, whatever it is."""

import json
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snaploom.confidential import visible_lines
from snaploom.plugins.site.pagedata import LONGEST_TEXT, Html, data_block, table, tag, text

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></script><svg onload=alert(1)>",
    "<!--<script>",
    "\u202egnp.exe",
    "&lt;b&gt;",
    "' onmouseover='alert(1)",
    "]]>",
)
texts = st.text(max_size=60) | st.sampled_from(HOSTILE)


class Parsed(HTMLParser):
    """What a parser finds."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(document)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@given(texts, texts)
def test_parser_finds_the_elements_that_were_meant(inside: str, beside: str) -> None:
    parsed = Parsed(tag("p", inside, title=beside))
    assert parsed.elements == [("p", {"title": visible_lines(beside)})]
    assert parsed.text == visible_lines(inside)


@given(texts)
def test_data_is_one_element_and_read_as_it_was(value: str) -> None:
    block = data_block("data", {"value": value})
    parsed = Parsed(block)
    assert [name for name, _ in parsed.elements] == ["script"]
    assert json.loads(parsed.text)["value"] == value.encode("utf-16", "surrogatepass").decode(
        "utf-16", "replace"
    )
    assert not set("<>&") & set(parsed.text)


def test_very_long_text_is_cut_and_counted() -> None:
    assert text("x" * 10**6) == f"{'x' * LONGEST_TEXT}… (1,000,000 characters)"


def test_table_without_rows_is_nothing() -> None:
    assert table("Things", ("a",), []) == ""


@pytest.mark.parametrize("cell", HOSTILE)
def test_cells_and_headings_are_text(cell: str) -> None:
    parsed = Parsed(table(cell, (cell, "n"), [(cell, tag("b", cell))]))
    assert not {"img", "svg", "script"} & {name for name, _ in parsed.elements}


def test_html_is_not_escaped_again() -> None:
    assert tag("p", Html("<b>x</b>"), "<") == "<p><b>x</b>&lt;</p>"
