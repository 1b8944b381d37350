"""Pages in a real Chromium: by mouse, by keys, on a phone, in the dark, on paper, read aloud."""

import os
import re
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from support.site.chromium import DESK, PHONE, Browser, Page
from support.site.histories import Events, declarations, write_history

from snaploom.cli.main import run_command
from snaploom.models.allowances import NO_ALLOWANCES
from snaploom.plugins.site.commands import PageSource, page_server

pytestmark = pytest.mark.slow

PICTURES = os.environ.get("SNAPLOOM_PAGE_PICTURES", "")
"""Folder in which `make page-pictures` wants the pictures of the docs; empty as a rule."""
ROWS = "[...document.querySelectorAll('#snapshot-table tbody tr')]"
TIMES = f"{ROWS}.map((row) => row.cells[0].textContent)"
CONTRAST = """
(() => {
  const parts = (color) => {
    const found = color.match(/[\\d.]+/g).map(Number);
    return found.length === 3 ? [...found, 1] : found;
  };
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, n) => sum + v * [0.2126, 0.7152, 0.0722][n], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const found = parts(getComputedStyle(at).backgroundColor);
      if (found[3] === 1) return found;
    }
    return [255, 255, 255, 1];
  };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || element.closest("svg, script, style") || !element.checkVisibility()) continue;
    if (element.closest(":disabled, .unseen, .skip, #tip")) continue;
    const [one, other] = [light(parts(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < 4.5) found.push(`${element.textContent.slice(0, 40)}: ${ratio.toFixed(2)}`);
  }
  return found;
})()
"""
"""Texts whose contrast is below what WCAG 2.2 asks for at level AA."""


@pytest.fixture(scope="module")
def address(eventful: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    site = tmp_path_factory.mktemp("site")
    command = ["page", "--all", "-f", str(eventful), "--to", str(site)]
    assert run_command([*command, "--now", "2024-03-31T12:00:00Z"]) == 0
    return (site / "index.html").as_uri()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with browser.page(address) as opened:
        yield opened


def view(page: Page) -> list[float]:
    box = page.value("document.getElementById('join-drawing').getAttribute('viewBox')")
    return [float(number) for number in box.split()]


def test_nothing_is_refused_or_asked_for(browser: Browser, address: str) -> None:
    with browser.page(address) as page:
        assert page.complaints() == []
        assert page.requests() == [address]


def test_pointer_shows_key_and_match_rate_of_a_source(page: Page) -> None:
    page.hover(".node[href='#source-3'] rect.card")
    shown = page.value("document.getElementById('tip').textContent")
    assert shown == (
        "region · parquet · key country · 75.2% of rows matched · 2% with a NULL key · 2 columns"
    )
    assert page.value("document.getElementById('tip').hidden") is False


def test_click_opens_what_is_known_of_a_source(page: Page) -> None:
    page.click(".node[href='#source-2'] rect.card")
    page.value("new Promise((done) => setTimeout(done, 50))")
    assert page.value("document.getElementById('source-2').open") is True
    assert "product_id" in page.value("document.activeElement.parentElement.textContent")


def test_graph_is_dragged_and_zoomed(page: Page) -> None:
    before = view(page)
    x, y = page.middle("#join-drawing")
    page.mouse("mousePressed", x, y, buttons=1)
    page.mouse("mouseMoved", x - 120, y, buttons=1)
    page.mouse("mouseReleased", x - 120, y)
    dragged = view(page)
    assert dragged[0] > before[0] + 50
    page.click("[data-zoom='in']")
    assert view(page)[2] < dragged[2]
    page.click("[data-zoom='fit']")
    assert view(page) == before


def test_graph_is_moved_by_keys(page: Page) -> None:
    page.value("document.getElementById('join-drawing').focus()")
    before = view(page)
    page.press("ArrowRight", 39)
    page.press("+", 187)
    after = view(page)
    assert after[2] < before[2]
    page.press("0", 48)
    assert view(page) == before


def test_keys_reach_the_content_first_and_then_every_section(page: Page) -> None:
    page.press("Tab", 9)
    assert page.value("document.activeElement.className") == "skip"
    page.press("Enter", 13)
    page.value("new Promise((done) => setTimeout(done, 50))")
    assert page.value("document.activeElement.id") == "content"


def test_snapshots_are_paged_and_filtered(page: Page) -> None:
    assert page.value(TIMES)[0] == "2024-03-30"
    page.click("#older")
    assert page.value(TIMES)[0] == "2024-02-29"
    page.click("#notable")
    assert page.value(TIMES) == [
        "2024-02-10", "2024-01-31", "2024-01-06", "2024-01-05", "2024-01-04", "2024-01-03",
    ]  # fmt: skip
    page.click("#notable")
    page.click("#until")
    page.type("2024-01-20")
    assert page.value(TIMES)[:2] == ["2024-01-20", "2024-01-19"]


def test_script_writes_rows_as_the_page_has_them(browser: Browser, address: str) -> None:
    rows = f"{ROWS}.map((row) => [...row.cells].map((cell) => cell.textContent))"
    with browser.page(address) as page:
        by_script = page.value(rows)
    with browser.page(address, scripts=False) as page:
        assert page.value(rows) == by_script


def test_pointer_shows_values_over_time(page: Page) -> None:
    page.hover("#rows-chart svg")
    shown = page.value("document.querySelector('#rows-chart .readout').textContent")
    assert re.fullmatch(r"2024-02-1\d: rows 1[12],\d{3}", shown)
    page.hover("#lanes .published svg")
    assert "rows" in page.value("document.querySelector('#lanes .readout').textContent")


def test_lineage_is_filtered(page: Page) -> None:
    page.click("#lineage-table-filter")
    page.type("regions")
    shown = page.value(
        "[...document.querySelectorAll('#lineage-table tbody tr')]"
        ".filter((row) => row.checkVisibility()).map((row) => row.cells[0].textContent)"
    )
    assert shown == ["customer.region.data.country", "customer.region.data.name"]


@pytest.mark.parametrize("size", [PHONE, (320, 640)])
def test_phone_needs_no_scrolling_sideways(browser, address, size):
    with browser.page(address, size) as page:
        assert page.value("document.documentElement.scrollWidth") <= size[0]


@pytest.mark.parametrize(("size", "shown"), [(DESK, "#join-drawing"), (PHONE, ".stacked")])
def test_graph_fits_the_screen_from_the_start(browser, address, size, shown):
    with browser.page(address, size) as page:
        drawings = "[...document.querySelectorAll('.graph')].filter((g) => g.checkVisibility())"
        assert page.value(f"{drawings}.map((g) => g.matches('{shown}'))") == [True]
        cards = f"[...document.querySelectorAll('{shown} .node')]"
        boxes = page.value(f"{cards}.map((c) => [c.getBoundingClientRect()].map((b) => "
                           "[b.left, b.right])[0])")  # fmt: skip
        assert len(boxes) == 4
        assert all(0 <= left < right <= size[0] for left, right in boxes)
        text = page.value(f"document.querySelector('{shown} .name').getBoundingClientRect().height")
        assert text > 9  # pixels: it can be read


def test_overview_finds_outputs_by_name(browser: Browser, eventful: Path, tmp_path: Path) -> None:
    text = (eventful / "model.yaml").read_text()
    documents = text.split("---\n")
    output = next(part for part in documents if "kind: OutputDataset" in part)
    late = output.replace("orders-wide", "orders-late").replace("/out/", "/late/")
    (tmp_path / "model.yaml").write_text("---\n".join([*documents, late]))
    command = ["page", "--all", "-f", str(tmp_path), "--to", str(tmp_path / "site")]
    assert run_command(command) == 0
    with browser.page((tmp_path / "site" / "index.html").as_uri()) as page:
        page.click("#outputs-table-filter")
        page.type("late")
        rows = "[...document.querySelectorAll('#outputs-table tbody tr')]"
        shown = page.value(f"{rows}.filter((r) => !r.hidden).map((r) => r.cells[0].textContent)")
        assert shown == ["orders-late"]


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_has_contrast(browser: Browser, address: str, *, dark: bool) -> None:
    with browser.page(address, dark=dark) as page:
        assert page.value(CONTRAST) == []
        assert page.value("getComputedStyle(document.body).backgroundColor") == (
            "rgb(15, 21, 27)" if dark else "rgb(245, 247, 249)"
        )


def test_assistive_software_finds_landmarks_headings_and_names(page: Page) -> None:
    found = page.accessible()
    roles = {role for role, _ in found}
    assert {"banner", "navigation", "main", "region", "heading", "table"} <= roles
    headings = [name for role, name in found if role == "heading"]
    assert headings[0].startswith("orders-wide")
    must_have = {"link", "button", "searchbox", "checkbox", "region", "image", "table"}
    assert [role for role, name in found if role in must_have and not name] == []


def test_ids_are_used_once_and_links_lead_to_them(page: Page) -> None:
    ids: list[Any] = page.value("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))
    links = page.value("[...document.querySelectorAll('a')].map((a) => a.getAttribute('href'))")
    assert {link.removeprefix("#") for link in links} <= set(ids)


@pytest.mark.parametrize(("name", "size"), [("page.png", (1200, 1250)), ("page-phone.png", PHONE)])
def test_picture_of_the_docs_is_small(name, size, browser, address, tmp_path):
    picture = Path(PICTURES or tmp_path) / name
    with browser.page(address, size) as page:
        page.screenshot(picture)
    assert 30_000 < picture.stat().st_size < 150_000


def test_headings_leave_out_no_level(page: Page) -> None:
    levels = page.value("[...document.querySelectorAll('h1,h2,h3')].map((h) => +h.tagName[1])")
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_paper_has_everything_opened_and_little_waste(page: Page) -> None:
    printed = page.pdf()
    assert printed.startswith(b"%PDF")
    pages = len(re.findall(rb"/Type\s*/Page\b", printed))
    assert 2 <= pages <= 9


def test_page_without_scripts_has_the_newest_snapshots(browser: Browser, address: str) -> None:
    with browser.page(address, scripts=False) as page:
        assert len(page.value(TIMES)) == 30
        shown = "document.querySelector('.unscripted').checkVisibility()"
        assert page.value(shown) is True
        assert page.value("document.querySelector('.toolbar').checkVisibility()") is False


def test_served_page_shows_what_is_published_meanwhile(browser: Browser, tmp_path: Path) -> None:
    few = Events(gaps=(), deleted=(), restated=(), doubtful=())
    declarations(tmp_path, tmp_path / "out")
    write_history(tmp_path / "out", 3, few)
    source = PageSource([tmp_path / "model.yaml"], (), NO_ALLOWANCES)
    with page_server(source, "127.0.0.1", 0) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        with browser.page(f"http://127.0.0.1:{server.server_address[1]}/") as page:
            assert page.value(TIMES)[0] == "2024-01-03"
            shutil.rmtree(tmp_path / "out")
            write_history(tmp_path / "out", 4, few)
            page.call("Page.bringToFront")
            browser.wait_for_next("Page.loadEventFired", page.session)
            assert page.value(TIMES)[0] == "2024-01-04"
            assert page.complaints() == []
        server.shutdown()
