"""Links of the site are followed; what leads nowhere is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.hostile.supply import script

CHECK = script("sitecheck")
FAULTS = {
    '<a href="missing.html">': "missing.html: there is no such file",
    '<a href="other.html#nowhere">': "other.html#nowhere: other.html has no nowhere",
    '<a href="#nowhere">': "#nowhere: index.html has no nowhere",
    '<img src="images/missing.svg">': "images/missing.svg: there is no such file",
    '<script src="https://cdn.example/a.js"></script>': "comes from another host",
    '<link rel="stylesheet" href="//cdn.example/a.css">': "comes from another host",
}
SOUND = (
    '<a href="other.html#here">', '<a href="https://example.org/">', '<a href=".">',
    '<img src="a%20b.svg">', '<img src="data:image/png;base64,AA">', '<a href="mailto:a@b.c">',
)  # fmt: skip


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "other.html").write_text('<h2 id="here">Here</h2>')
    (tmp_path / "a b.svg").write_text("<svg/>")
    return tmp_path


@pytest.mark.parametrize(("text", "expected"), FAULTS.items())
def test_link_that_leads_nowhere_is_named(text: str, expected: str, site: Path) -> None:
    (site / "index.html").write_text(text)
    (found,) = CHECK.faults(site)
    assert found.startswith("index.html: ")
    assert expected in found


@pytest.mark.parametrize("text", SOUND)
def test_link_that_leads_somewhere_is_not(text: str, site: Path) -> None:
    (site / "index.html").write_text(text)
    assert list(CHECK.faults(site)) == []
