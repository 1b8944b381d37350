"""Private words are refused where the field has a term; what `make lint` reports of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.documentation.examples import REPOSITORY
from support.hostile.supply import script

WORDS = script("lint/words")


def reported(folder: Path, name: str, text: str) -> list[str]:
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
    (found,) = reported(tmp_path, "sparkjobs/a.py", text)
    assert found.startswith(f'sparkjobs/a.py:{line}: "{word}": write ')


@pytest.mark.parametrize("text", ["def f():\n    {}", "class A:\n    {}", "x: int = 1\n{}"])
def test_docstring_of_the_product_has_a_head(tmp_path: Path, text: str) -> None:
    docstring = '"""How long it waits."""'
    (found,) = reported(tmp_path, "sparkjobs/src/a.py", text.format(docstring))
    assert found == 'sparkjobs/src/a.py:2: "How": write a noun or a verb: "Number of", "Return"'


@pytest.mark.parametrize(
    "text", ["at = file.tell()", "mandear = essay = 1", "# stand-alone", "x = 'in the background'"]
)
def test_other_words_of_code_pass(tmp_path: Path, text: str) -> None:
    assert reported(tmp_path, "sparkjobs/a.py", text) == []


def test_prose_of_a_page_is_checked_and_its_code_is_not(tmp_path: Path) -> None:
    page = "# Page\n\n```\nsay\n```\n\n`told` is a name.\n\nIt says so.\n"
    (found,) = reported(tmp_path, "docs/page.md", page)
    assert found.startswith('docs/page.md:9: "says"')
    assert reported(tmp_path, "docs/decisions/0001-a.md", page) == []


@pytest.mark.parametrize("name", ["voice", "sorting"])
def test_name_of_a_module_is_checked(tmp_path: Path, name: str) -> None:
    (found,) = reported(tmp_path, f"sparkjobs/{name}.py", "")
    assert found.startswith(f'sparkjobs/{name}.py:1: "{name}": write ')
    assert reported(tmp_path, "sparkjobs/rendering.py", "") == []
