"""The folder `operator/` must never shadow the standard library's module of that name."""

import operator
from pathlib import Path

import pytest

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
