"""`Project.page` and `status`: results that draw themselves."""

from pathlib import Path

from support.declared.shop import Shop

import snaploom as sl


def test_pages_are_drawn_in_a_frame_and_written(eventful: Path, tmp_path: Path) -> None:
    pages = sl.load(eventful).page("orders-wide", now="2024-03-31T12:00:00Z")
    assert "<h1>orders-wide" in pages.html
    drawn = pages._repr_html_()
    assert drawn.startswith('<iframe title="orders-wide" sandbox="allow-scripts"')
    assert drawn.count("<") == 2  # the page itself is an attribute
    (file,) = pages.save(tmp_path / "site")
    assert file.read_text() == pages.html


def test_status_draws_tree_and_timeline(eventful: Path) -> None:
    status = sl.load(eventful).status("orders-wide", now="2024-03-31T12:00:00Z")
    first, *lines = str(status).splitlines()
    assert first.startswith("orders-wide: ")
    assert "newest snapshot 2024-03-30 with" in first
    assert any("customer" in line and "% matched" in line for line in lines)
    assert any(line.startswith("published     ") and "█" in line for line in lines)
    drawn = status._repr_html_()
    assert drawn.count("<svg xmlns") == 2
    assert "% matched" in drawn


def test_status_of_what_never_ran_has_a_tree_and_no_timeline(tmp_path: Path) -> None:
    status = sl.load(Shop(tmp_path).write()).status()
    assert str(status).splitlines() == [
        "wide: nothing published",
        "orders",
        "└── customers  by customer-id",
    ]
    assert status.is_ok
    assert status._repr_html_().count("<svg xmlns") == 1
