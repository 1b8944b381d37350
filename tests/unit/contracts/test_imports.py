"""What can be imported where neither Spark nor Kubernetes is installed."""

import pkgutil
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import snaploom
import snaploom_operator
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
    "snaploom.listing", "snaploom.loading", "snaploom.models", "snaploom.planning",
    "snaploom.storage",
)  # fmt: skip
ENTRY_POINTS = ("snaploom.cli.main", "snaploom.jobs.weaving.runs")


def modules_of(package):
    spec = find_spec(package)
    yield package
    for info in pkgutil.walk_packages(spec.submodule_search_locations, f"{package}."):
        yield info.name


def test_packages_free_of_spark_are_found():
    assert set(FREE) <= {
        f"snaploom.{info.name}" for info in pkgutil.iter_modules(snaploom.__path__)
    }


@pytest.mark.parametrize("package", [*FREE, *ENTRY_POINTS])
def test_import_needs_neither_spark_nor_kubernetes(package):
    names = list(modules_of(package)) if package in FREE else [package]
    script = BLOCK.format(blocked=["pyspark", "py4j", "kubernetes"], module=", ".join(names))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_commands_of_the_operator_need_no_arrow():
    modules = {target.partition(":")[0] for _, target, _ in COMMANDS}
    others = ("snaploom.cli.main", "snaploom.cli.errordisplay", "snaploom.cli.console")
    script = BLOCK.format(
        blocked=["pyarrow", "numpy", "pandas", "pyspark", "py4j"],
        module=", ".join(sorted({*modules, *others})),
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_run_with_nothing_due_needs_no_arrow():
    modules = ("snaploom.cli.run", "snaploom.cli.plan", "snaploom.project.project")
    blocked = ["pyarrow", "numpy", "pandas", "pyspark", "py4j"]
    script = BLOCK.format(blocked=blocked, module=", ".join(modules))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_only_one_module_of_the_operator_watches():
    root = Path(snaploom_operator.__file__).parent
    watching = {
        file.relative_to(root).as_posix()
        for file in root.rglob("*.py")
        if re.search(r"\b_?cluster\.(watch|pages)\(", file.read_text("utf-8"))
    }
    assert watching == {"watch/reflector.py"}
