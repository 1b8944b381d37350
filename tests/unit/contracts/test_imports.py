"""What can be imported where neither Spark nor Kubernetes is installed."""

import ast
import inspect
import operator
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.declared.declarations import Raw, complex_, document, files, simple
from support.documentation.examples import REPOSITORY

import snaploom
import snaploom_operator
from snaploom import ondemand
from snaploom.models.datasource import DataSource, DataSourceSpec
from snaploom.sources.registry import KINDS, declared
from snaploom_operator.commands import COMMANDS

BLOCK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ImportError(f"{{name}} is blocked")

sys.meta_path.insert(0, Blocked())
import {module}
"""
FREE = (
    "snaploom.files", "snaploom.loading", "snaploom.models", "snaploom.output", "snaploom.parquet",
    "snaploom.plan", "snaploom.policy", "snaploom.types", "snaploom.validate",
)  # fmt: skip
ENTRY_POINTS = ("snaploom.cli.main", "snaploom.run.weaving.runs")


def modules_of(package):
    spec = find_spec(package)
    yield package
    for info in pkgutil.walk_packages(spec.submodule_search_locations, f"{package}."):
        yield info.name


def test_packages_free_of_spark_are_found():
    assert set(FREE) <= {
        f"snaploom.{info.name}" for info in pkgutil.iter_modules(snaploom.__path__)
    }


def run(script):
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def imported_without(blocked, modules):
    run(BLOCK.format(blocked=blocked, module=", ".join(modules)))


def test_import_needs_neither_spark_nor_kubernetes():
    free = [name for package in FREE for name in modules_of(package)]
    imported_without(["pyspark", "py4j", "kubernetes"], [*free, *ENTRY_POINTS])


def test_neither_commands_of_the_operator_nor_a_run_with_nothing_due_need_arrow():
    modules = {target.partition(":")[0] for _, target, _ in COMMANDS}
    others = ("snaploom.cli.main", "snaploom.cli.console")
    runs = ("snaploom.cli.run", "snaploom.cli.run", "snaploom.project.project")
    blocked = ["pyarrow", "numpy", "pandas", "pyspark", "py4j"]
    imported_without(blocked, sorted({*modules, *others, *runs}))


def test_commands_that_show_what_is_published_judge_no_sql():
    commands = ["snaploom.cli.main", "snaploom.cli.snapshots", "snaploom.cli.snapshots"]
    imported_without(["sqlglot", "networkx", "pyarrow", "numpy", "pyspark", "py4j"], commands)


def test_what_builds_no_graph_needs_no_networkx():
    shown = ["snapshots", "files", "schema", "gc"]
    imported_without(
        ["networkx"],
        [
            "snaploom.cli.main",
            "snaploom.reader",
            *{target.partition(":")[0] for name, target, _ in COMMANDS if name in shown},
        ],
    )


def test_what_has_no_sql_needs_no_parser_of_sql():
    commands = ["snaploom.cli.validate", "snaploom.cli.run", "snaploom.cli.run"]
    imported_without(["sqlglot"], [*commands, "snaploom_operator.process.operator"])


def test_commands_of_ours_ask_no_package_for_more():
    run(
        "import snaploom.cli.main as cli\n"
        "def refused(**_): raise AssertionError('every package is asked')\n"
        "cli.entry_points = refused\n"
        "cli.build_app(['index', 'list', 'folder'])\n"
        "cli.build_app(['validate'])\n"
        "try:\n    cli.build_app(['operator', 'serve'])\n"
        "except AssertionError: pass\n"
        "else: raise SystemExit('nobody is asked for an unknown command')\n"
    )


def test_models_are_built_when_they_are_first_used():
    run(
        "from snaploom.models.kinds import KINDS; from snaploom.models.report import Report; "
        "models = [Report, *(kind.model for kind in KINDS)]; "
        "assert not [model for model in models if model.__pydantic_complete__]"
    )


def test_only_one_module_of_the_operator_lists():
    root = Path(snaploom_operator.__file__).parent
    listing = {
        file.relative_to(root).as_posix()
        for file in root.rglob("*.py")
        if re.search(r"\b_?cluster\.pages\(", file.read_text("utf-8"))
    }
    assert listing == {"store/feed.py"}


def test_names_imported_on_demand_are_those_that_type_checkers_see():
    tree = ast.parse(inspect.getsource(ondemand))
    shown = next(node for node in tree.body if isinstance(node, ast.If)).body
    imported = {name.asname for node in shown[:-1] for name in node.names} - {None}
    renamed = {shown[-1].targets[0].id}
    assert imported | renamed == set(ondemand.PLACES)


@pytest.mark.parametrize("name", ondemand.PLACES)
def test_what_is_imported_on_demand_is_there(name):
    assert getattr(ondemand, name).__module__ == ondemand.PLACES[name].partition(":")[0]


def test_other_names_are_refused():
    with pytest.raises(AttributeError, match=r"snaploom\.ondemand"):
        _ = ondemand.nothing


PROGRAMS = [
    path
    for path in Path(snaploom.__file__).parent.rglob("*.py")
    if 'if __name__ == "__main__":' in path.read_text("utf-8")
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_no_module_beside_a_program_hides_an_installed_package(program):
    # Python looks for packages beside the file that it starts before it looks anywhere else.
    beside = {path.stem for path in program.parent.iterdir()} - {"__init__", "__pycache__"}
    assert beside & {*sys.stdlib_module_names, *packages_distributions()} == set()


# The folder `operator/` must never shadow the standard library's module of that name.


ROOT = Path(__file__).parents[3]


def test_operator_is_the_standard_library():
    assert operator.add(1, 2) == 3


@pytest.mark.parametrize("folder", ["operator", "sparkjobs", "crds", "charts", "tests"])
def test_folder_is_no_package(folder):
    assert not (ROOT / folder / "__init__.py").exists()


@pytest.mark.parametrize("source", ["sparkjobs/src/snaploom", "operator/src/snaploom_operator"])
def test_every_folder_with_code_is_a_package(source):
    folders = {path.parent for path in (ROOT / source).rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


# A source is of one kind, and only its kind looks into the field that declares it.


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
