"""Pages hang together: links lead somewhere, YAML is valid, nothing names a machine."""

import ast
import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from generation.chart import values_schema
from generation.models import resource_schema
from support.declared.shop import COMMANDS_OF_LAPTOPS
from support.documentation.pages import (
    DOCS,
    REPOSITORY,
    anchors_of,
    blocks_of,
    every_page,
    links_of,
)
from support.hostile.supply import script

from snaploom.loading.load import load
from snaploom.models.findings import errors_of
from snaploom.models.kinds import KINDS
from snaploom.validate.validator import validate
from snaploom_operator.commands import COMMANDS as OF_CLUSTERS

PAGES = every_page()
STARTER = REPOSITORY / "sparkjobs/src/snaploom/cli/templates/model.yaml"
PART = re.compile(r"# Part of an? (\w+)\b")
FORBIDDEN = re.compile(
    r"/(?:work|root|home|Users)/|/tmp/(?!snaploom)|https?://(?!keepachangelog|semver)\S*"
    r"(?:pypi|pythonhosted|npmjs|docker|quay|maven)",
)


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


@pytest.mark.parametrize(
    "notebook", sorted(REPOSITORY.glob("examples/notebooks/*.ipynb")), ids=lambda one: one.name
)
def test_notebooks_import_names_that_exist(notebook: Path) -> None:
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    imports = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom)]
    assert imports
    for node in imports:
        module = import_module(str(node.module))
        assert [name.name for name in node.names if not hasattr(module, name.name)] == []


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


# Links of the site are followed; what leads nowhere is named.


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


# Commands, fields and values that pages for operating name exist.


OPERATING = sorted((DOCS / "operating").glob("*.md"))
OURS = {*COMMANDS_OF_LAPTOPS, *(name for name, _, _ in OF_CLUSTERS)}
KUBECTL = {
    "annotate", "apply", "create", "delete", "describe", "diff", "events", "get", "kustomize",
    "label", "logs", "patch", "rollout", "wait",
}  # fmt: skip
HELM = {"install", "rollback", "template", "test", "uninstall", "upgrade"}
COMMAND = re.compile(r"(?:^|`|\$ |\| )((?:snaploom|kubectl|helm) [a-z][^`|]*)", re.MULTILINE)
FIELD = re.compile(r"`([a-z][A-Za-z]+(?:\.[A-Za-z]+)+)(?::|`)")
STATUS = {"spec", "status"}
NO_FIELDS = re.compile(
    r"[\w.]*\.(?:io|md|json|yaml|toml|xml|mod|sum)"
    r"|spark\.(?!image|application|namespaces|serviceAccount)[\w.]+"
    r"|\w*\.?data\.column|limits\.cpu|snaploom\.[a-z]+"
)
"""Dotted words that are something else: groups, files, settings of Spark, functions, quotas."""


def fields(schema: object) -> Iterator[str]:
    """Every name of a property, however deep."""
    if isinstance(schema, dict):
        for key, inner in schema.items():
            if key == "properties":
                yield from inner
            yield from fields(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from fields(inner)


def test_commands_exist() -> None:
    commands = [found for page in OPERATING for found in COMMAND.findall(page.read_text("utf-8"))]
    assert len(commands) > 20
    for command in commands:
        program, *rest = command.split()
        if program == "snaploom":
            assert rest[0] in OURS or " ".join(rest[:2]) in OURS, command
        else:
            assert rest[0] in (KUBECTL if program == "kubectl" else HELM), command


def test_fields_and_values_exist() -> None:
    schemas = [values_schema(), *(resource_schema(kind.model) for kind in KINDS)]
    known = {name for schema in schemas for name in fields(schema)} | STATUS
    named = {found for page in OPERATING for found in FIELD.findall(page.read_text("utf-8"))}
    assert len(named) > 20
    parts = {part for field in named if not NO_FIELDS.fullmatch(field) for part in field.split(".")}
    assert parts - known == set()


SOURCES = ("sparkjobs/src/snaploom", "operator/src/snaploom_operator")
FILE = re.compile(r"`([\w/]+\.(?:py|java))`")


def test_files_on_the_ways_through_exist() -> None:
    known = {str(path) for root in SOURCES for path in (REPOSITORY / root).rglob("*.*")}
    named = FILE.findall((DOCS / "design" / "ways.md").read_text("utf-8"))
    assert len(named) > 30
    assert not [name for name in named if not any(path.endswith(f"/{name}") for path in known)]
