"""What can be imported where neither Spark nor Kubernetes is installed."""

import pkgutil
import subprocess
import sys
from importlib.util import find_spec

import pytest

import snaploom

BLOCK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ImportError(f"{{name}} is blocked")

sys.meta_path.insert(0, Blocked())
import {module}
"""
FREE = ("snaploom.models", "snaploom.planning", "snaploom.storage", "snaploom.loading")
ENTRY_POINTS = ("snaploom.cli.main",)


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
    script = BLOCK.format(
        blocked=["pyspark", "py4j", "kopf", "kubernetes"], module=", ".join(names)
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
