"""Commands, fields and values that pages for operating name exist."""

from __future__ import annotations

import re
from collections.abc import Iterator

from generation.chart import values_schema
from generation.models import resource_schema
from support.declared.shop import COMMANDS_OF_LAPTOPS
from support.documentation.pages import DOCS, REPOSITORY

from snaploom.models.kinds import KINDS
from snaploom_operator.commands import COMMANDS as OF_CLUSTERS

PAGES = sorted((DOCS / "operating").glob("*.md"))
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
    commands = [found for page in PAGES for found in COMMAND.findall(page.read_text("utf-8"))]
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
    named = {found for page in PAGES for found in FIELD.findall(page.read_text("utf-8"))}
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
