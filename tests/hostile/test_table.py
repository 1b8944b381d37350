"""The tables of entry points and attacks are complete, and the tests that they name exist."""

import ast
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.site.chromium import DESK, PHONE, Browser
from support.site.histories import Events, declarations, write_history

from snaploom.cli.main import run_command

ROOT = Path(__file__).parents[2]
TABLES = sorted(Path(__file__).with_name("tables").glob("*.yaml"))


def table_of(path: Path) -> dict[str, Any]:
    table: dict[str, Any] = yaml.safe_load(path.read_text())
    return table


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_every_entry_point_has_every_attack_once(path: Path) -> None:
    table = table_of(path)
    wanted = {(entry, attack) for entry in table["entry_points"] for attack in table["attacks"]}
    found = Counter((cell["entry_point"], cell["attack"]) for cell in table["cells"])
    assert set(found) == wanted
    assert set(found.values()) == {1}


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_every_cell_has_a_test_or_a_reason(path: Path) -> None:
    for cell in table_of(path)["cells"]:
        assert bool(cell.get("tests")) != bool(cell.get("reason")), cell
        assert bool(cell.get("stands")) == bool(cell.get("tests")), cell


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_every_test_that_is_named_exists(path: Path) -> None:
    named = {test for cell in table_of(path)["cells"] for test in cell.get("tests", ())}
    missing = [test for test in sorted(named) if not _exists(test)]
    assert missing == []


def _exists(test: str) -> bool:
    file, _, name = test.partition("::")
    path = ROOT / file
    if not path.is_file():
        return False
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    defined = {
        node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, functions)
    }
    return name.partition("[")[0] in defined


# Pages of what somebody else prepared: text stays text, in a browser too.


TEXTS = {
    "script": "<script>window.hostile=1</script>",
    "attribute": '"\' onmouseover=window.hostile=1 autofocus onfocus=window.hostile=1 x="',
    "image": "<img src=x onerror=window.hostile=1>",
    "end of data": "</script><script>window.hostile=1</script><!--",
    "end of style": "</style></title><svg onload=window.hostile=1>",
    "frame": "<iframe srcdoc='<script>parent.hostile=1</script>'></iframe>",
    "refresh": "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>",
    "direction": "\u202egnp.elif\u2066",
    "escape": "\x1b[31m\x00\x07",
    "entity": "&lt;script&gt;&amp;#x3c;",
}
LOOK = """
(() => {
  document.querySelectorAll('*').forEach((e) => e.dispatchEvent(new Event('mouseover')));
  return [window.hostile === undefined, document.scripts.length,
    document.querySelectorAll('img, iframe, object, embed, link, base').length,
    [...document.querySelectorAll('body *')].some((e) => [...e.attributes].some(
      (a) => a.name.startsWith('on') || a.name === 'style' && e.id !== 'tip'))]; })()
"""


def hostile_site(folder: Path, text: str) -> str:
    """The address of a page with a text wherever a writer of folder or YAML may put one."""
    events = Events(reason=text, column=f"c{text}".replace("\x00", ""), deleted=(0,))
    write_history(folder / "out", 45, events)
    check = {"name": text.replace("\x00", "").replace("\x1b", "")[:200], "mode": "WARN",
             "expression": "data.a >= 0"}  # fmt: skip
    path = declarations(folder, folder / "out", checks=[check])
    command = ["page", "orders-wide", "-f", str(path), "--to", str(folder / "site")]
    assert run_command([*command, "--now", "2024-02-15T00:00:00Z"]) == 0
    return (folder / "site" / "index.html").as_uri()


@pytest.mark.slow
@pytest.mark.parametrize("case", TEXTS)
def test_text_of_others_neither_runs_nor_loads_nor_becomes_an_element(browser, tmp_path, case):
    address = hostile_site(tmp_path, TEXTS[case])
    with browser.page(address) as page:
        harmless, scripts, elements, handlers = page.value(LOOK)
        assert (harmless, elements, handlers) == (True, 0, False)
        assert scripts == len(page.value("[...document.querySelectorAll('script')].map(e => e.id)"))
        assert page.complaints() == []
        assert page.requests() == [address]
        assert page.value("location.href") == address


@pytest.mark.slow
def test_policy_stops_what_would_slip_through(browser: Browser, tmp_path: Path) -> None:
    address = hostile_site(tmp_path, "plain")
    file = tmp_path / "site" / "index.html"
    broken = file.read_text().replace("</main>", "<img src=x onerror=window.hostile=1></main>"
                                      "<script>window.hostile=1</script>")  # fmt: skip
    file.write_text(broken)
    with browser.page(address) as page:
        assert page.value("window.hostile === undefined")
        complaints = " ".join(page.complaints())
        assert "script-src" in complaints
        assert "img-src" in complaints


@pytest.mark.slow
@pytest.mark.parametrize("size", [DESK, PHONE])
def test_very_long_words_break_no_layout(browser, tmp_path, size):
    address = hostile_site(tmp_path, "W" * 100_000)
    with browser.page(address, size) as page:
        assert page.value("document.documentElement.scrollWidth") <= size[0]
        assert (tmp_path / "site" / "index.html").stat().st_size < 400_000


def test_control_characters_are_made_visible(tmp_path: Path) -> None:
    hostile_site(tmp_path, TEXTS["direction"] + "\x1b")
    document = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert not set("\u202e\u2066\x1b") & set(document)
    assert "\\u202e" in document
