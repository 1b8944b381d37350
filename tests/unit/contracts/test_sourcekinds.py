"""A source is of one kind, and only its kind looks into the field that declares it."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.declared.declarations import Raw, complex_, document, files, simple
from support.documentation.examples import REPOSITORY

import snaploom
from snaploom.models.datasource import DataSource, DataSourceSpec
from snaploom.sources.registry import KINDS, declared

LIBRARY = REPOSITORY / "sparkjobs/src/snaploom"
CODE = (LIBRARY, REPOSITORY / "operator/src/snaploom_operator")
OF_KINDS = (
    LIBRARY / "models/datasource.py",
    *(LIBRARY / "sources").rglob("declared.py"),
    LIBRARY / "sources/databases",  # `read.jdbc` and packages of Java
)
DATABASE = {
    "jdbc": {
        "driver": "SQLITE",
        "database": "/data/shop.db",
        "tableReference": "orders",
        "snapshot": {"fromReadTime": {}},
    }
}


def looked_into(path: Path) -> Iterator[str]:
    """Fields of a spec, in what a module reads of objects; a new field needs a name of its own."""
    fields, text = set(DataSourceSpec.model_fields), path.read_text("utf-8")
    if not any(f".{field}" in text for field in fields):  # most modules: parsing takes seconds
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and node.attr in fields:
            yield f"{path}:{node.lineno}: .{node.attr}"


def test_only_kinds_look_into_a_spec() -> None:
    modules = [path for folder in CODE for path in folder.rglob("*.py")]
    others = [path for path in modules if not any(map(path.is_relative_to, OF_KINDS))]
    assert len(others) < len(modules)
    assert [found for path in others for found in looked_into(path)] == []


def test_python_declares_every_kind() -> None:
    keywords = set(inspect.signature(snaploom.DataSource.__init__).parameters)
    kinds = {"files" if name == "hdfs_like" else name for name in DataSourceSpec.model_fields}
    assert kinds <= keywords


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        (files("a")["spec"], "FileSource"),
        (files("a", format="Iceberg")["spec"], "TableSource"),
        (files("a", format="delta")["spec"], "TableSource"),
        (DATABASE, "DatabaseSource"),
        (simple("a", "SELECT 1 FROM c")["spec"], "SimpleQuery"),
        (complex_("a", "SELECT 1 FROM c0", "b")["spec"], "ComplexQuery"),
    ],
)
def test_a_source_is_of_one_kind(spec: Raw, kind: str) -> None:
    source = DataSource.parse(document("DataSource", "a", spec))
    claimed = [each for each in KINDS if each.of(source) is not None]
    assert [each.__name__ for each in claimed] == [kind]
    assert type(declared(source)) is claimed[0]
