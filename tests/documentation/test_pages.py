"""Pages hang together: links lead somewhere, YAML is valid, nothing names a machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from support.documentation.pages import (
    DOCS,
    REPOSITORY,
    anchors_of,
    blocks_of,
    every_page,
    links_of,
)

from snaploom.loading.load import load
from snaploom.models.findings import errors_of
from snaploom.validate.validator import validate

PAGES = every_page()
STARTER = REPOSITORY / "sparkjobs/src/snaploom/cli/templates/model.yaml"
PART = re.compile(r"# Part of an? (\w+)\b")
FORBIDDEN = re.compile(
    r"/(?:work|root|home|Users)/|/tmp/(?!snaploom)|https?://(?!keepachangelog|semver)\S*"
    r"(?:pypi|pythonhosted|npmjs|docker|quay|maven)",
)
FOR_DEVELOPERS = re.compile(r"\b(?:rules?\s+[WSRP]|decisions? )\d")


def pages(*, of: str = "") -> pytest.MarkDecorator:
    chosen = [page for page in PAGES if not of or of in {b.language for b in blocks_of(page)}]
    return pytest.mark.parametrize(
        "page", chosen, ids=lambda page: str(page.relative_to(REPOSITORY))
    )


@pages()
def test_links_lead_to_pages_and_headings(page: Path) -> None:
    for link in links_of(page):
        if link.startswith(("https://", "http://")):
            continue
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), link
        # The site has the folder of pages, and nothing beside it.
        assert (DOCS if DOCS in page.parents else REPOSITORY) in path.parents, link
        assert not anchor or anchor in anchors_of(path), link


@pages()
def test_no_page_names_a_machine_or_a_registry(page: Path) -> None:
    assert FORBIDDEN.findall(page.read_text("utf-8")) == []


@pages(of="yaml")
def test_yaml_is_valid(page: Path, tmp_path: Path) -> None:
    whole, parts = [], []
    for block in blocks_of(page):
        if block.language == "yaml":
            part = PART.match(block.lines[0])
            parts.append((part[1], block.text)) if part else whole.append(block.text)
    if whole:
        refuse_errors("---\n".join(whole), tmp_path / "whole.yaml")
    for number, (kind, text) in enumerate(parts):
        refuse_errors(with_part(kind, text), tmp_path / f"part{number}.yaml", checks=False)


def test_every_page_is_in_the_table_of_contents() -> None:
    contents = (DOCS / "index.md", DOCS / "decisions.md")
    linked = {
        (DOCS / link.partition("#")[0]).resolve() for page in contents for link in links_of(page)
    }
    assert set(DOCS.rglob("*.md")) - {DOCS / "index.md"} <= linked


def refuse_errors(text: str, file: Path, *, checks: bool = True) -> None:
    """Load documents; those that belong together are validated together as well."""
    file.write_text(text, "utf-8")
    loaded = load([file])
    found = list(errors_of(loaded.findings))
    if checks and any(resource.kind == "OutputDataset" for resource in loaded.resources):
        found += errors_of(validate(loaded.resources))
    assert found == [], text


def with_part(kind: str, text: str) -> str:
    """The starter's first resource of a kind, with a part put in; lists and variants replace."""
    documents = yaml.safe_load_all(STARTER.read_text("utf-8").replace("@FOLDER@", "/data"))
    whole = next(document for document in documents if document["kind"] == kind)
    return yaml.safe_dump(merged(whole, yaml.safe_load(text)))


def merged(whole: object, part: object) -> object:
    if not (isinstance(whole, dict) and isinstance(part, dict)):
        return part
    # A filter has exactly one form: another one takes its place.
    whole = {key: value for key, value in whole.items() if not key.startswith("from")} | (
        {key: whole[key] for key in part if key in whole}
    )
    return {**whole, **{key: merged(whole.get(key), value) for key, value in part.items()}}
