"""Targets of citations exist; faults that `make lint` reports of others."""

from pathlib import Path

import pytest
from support.documentation.examples import REPOSITORY
from support.hostile.supply import script

CITATIONS = script("lint/citations")

PAGES = {
    "docs/design/weaving.md": "# Weaving\n\n## W1. One\n\n## W2. Two\n",
    "docs/design/publication.md": "# Publication\n\n### P1. One\n",
    "docs/design/skipping.md": "# Skipping\n\n## S1. One\n",
    "docs/decisions/0035-types.md": "# 35. Types\n",
}


def reported(folder: Path, name: str, text: str) -> list[str]:
    for path, content in {**PAGES, name: text}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content, "utf-8")
    return [str(fault) for fault in CITATIONS.faults(folder, sorted({*PAGES, name}))]


def test_every_citation_and_link_of_the_repository_leads_somewhere() -> None:
    files = CITATIONS.known_files(REPOSITORY)
    assert [str(fault) for fault in CITATIONS.faults(REPOSITORY, files)] == []


@pytest.mark.parametrize(
    "text",
    [
        "(rule W2), rules W1 and W2, rules W1, W2 and S1, rules W1 to W2",
        "# one of several (rule\n# W1)",
        "Rule P1 holds (decision 0035).",
        "the seed of numbers, a trap for signals, section 2 of RFC 4180, (S3)",
    ],
)
def test_good_citation_passes(tmp_path: Path, text: str) -> None:
    assert reported(tmp_path, "a.py", text) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("first\n(rule W9)", "a.py:2: there is no rule W9 in docs/design/weaving.md"),
        ("rules W1 and\n    W3", "a.py:1: there is no rule W3"),
        ("rules W1, P1 and R1", "a.py:1: there is no rule R1 in docs/design/reconciling.md"),
        ("decision 0036", "a.py:1: there is no docs/decisions/0036-*.md"),
        ("decision 35", "a.py:1: decision 35: write `decision 0035`"),
        ("(ruling D24)", "a.py:1: 'ruling D24' is not in the repository: cite a heading"),
        ("ruling\nK20", "a.py:1: 'ruling K20' is not"),
        ("written (D26)", "a.py:1: '(D26)' is not"),
        ("trap 8", "a.py:1: 'trap 8' is not in the repository: trap N is rule SN"),
        ("`join.md`", "a.py:1: 'join.md' is not"),
        ("`operator.md` section 4", "a.py:1: '`operator.md` section 4' is not"),
        ("the design, section 3", "a.py:1: 'the design, section' is not"),
        ("the seed's form", 'a.py:1: "the seed\'s" is not'),
    ],
)
def test_citation_of_nothing_is_named_with_what_to_write(tmp_path, text, found):
    (fault,) = reported(tmp_path, "a.py", text)
    assert fault.startswith(found)


def test_link_to_no_file_or_heading_is_named(tmp_path: Path) -> None:
    text = (
        "[a](design/none.md) [b](design/weaving.md#w1-one)\n\n[c](design/weaving.md#w9) `[d](e)`\n"
    )
    assert reported(tmp_path, "docs/page.md", text) == [
        "docs/page.md:1: there is no design/none.md; link to a file that is here",
        "docs/page.md:3: weaving.md has no heading #w9; link to one of its headings",
    ]


def test_rule_has_one_number_on_the_page_of_its_letter(tmp_path: Path) -> None:
    text = "## R1. One\n\n## R1. Again\n\n## W7. Elsewhere\n"
    assert reported(tmp_path, "docs/design/reconciling.md", text) == [
        "docs/design/reconciling.md:3: R1 is there twice; give the second rule a number of its own",
        "docs/design/reconciling.md:5: W7 is no number of this page; its rules begin with R",
    ]


# Private words are refused where the field has a term; what `make lint` reports of them.


WORDS = script("lint/words")


def reported_words(folder: Path, name: str, text: str) -> list[str]:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, "utf-8")
    return [str(fault) for fault in WORDS.faults(folder, [name])]


def test_the_repository_has_no_private_word() -> None:
    files = WORDS.known_files(REPOSITORY)
    assert [str(fault) for fault in WORDS.faults(REPOSITORY, files)] == []


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("def tell_failure(): ...", 1, "tell"),
        ("class RunTeller: ...", 1, "teller"),
        ("told = 1", 1, "told"),
        ("def run(voice): ...", 1, "voice"),
        ('"""What it does.\n\nNothing says more.\n"""', 3, "says"),
        ("x = 1  # whoever reads it", 1, "whoever"),
        ("x = f'{1} is let go'", 1, "let go"),
        ("def _is_let_go(): ...", 1, "let_go"),
    ],
)
def test_private_word_of_code_is_refused(tmp_path: Path, text: str, line: int, word: str) -> None:
    (found,) = reported_words(tmp_path, "sparkjobs/a.py", text)
    assert found.startswith(f'sparkjobs/a.py:{line}: "{word}": write ')


@pytest.mark.parametrize("text", ["def f():\n    {}", "class A:\n    {}", "x: int = 1\n{}"])
def test_docstring_of_the_product_has_a_head(tmp_path: Path, text: str) -> None:
    docstring = '"""How long it waits."""'
    (found,) = reported_words(tmp_path, "sparkjobs/src/a.py", text.format(docstring))
    assert found == 'sparkjobs/src/a.py:2: "How": write a noun or a verb: "Number of", "Return"'


@pytest.mark.parametrize(
    "text", ["at = file.tell()", "mandear = essay = 1", "# stand-alone", "x = 'in the background'"]
)
def test_other_words_of_code_pass(tmp_path: Path, text: str) -> None:
    assert reported_words(tmp_path, "sparkjobs/a.py", text) == []


def test_prose_of_a_page_is_checked_and_its_code_is_not(tmp_path: Path) -> None:
    page = "# Page\n\n```\nsay\n```\n\n`told` is a name.\n\nIt says so.\n"
    (found,) = reported_words(tmp_path, "docs/page.md", page)
    assert found.startswith('docs/page.md:9: "says"')
    assert reported_words(tmp_path, "docs/decisions/0001-a.md", page) == []


@pytest.mark.parametrize("name", ["voice", "sorting"])
def test_name_of_a_module_is_checked(tmp_path: Path, name: str) -> None:
    (found,) = reported_words(tmp_path, f"sparkjobs/{name}.py", "")
    assert found.startswith(f'sparkjobs/{name}.py:1: "{name}": write ')
    assert reported_words(tmp_path, "sparkjobs/rendering.py", "") == []
