"""Snaploom as users have it: from wheels of a release, in an environment without a checkout."""

import json
import os
import shutil
from pathlib import Path

import pytest
from support.documentation.examples import REPOSITORY, copy_example, run_command
from support.documentation.packages import PYTHONS, Installed, empty_environment, release_packages
from support.documentation.pagecommands import run_blocks
from support.documentation.pages import DOCS, blocks_of

NOTEBOOKS = REPOSITORY / "examples" / "notebooks"
pytestmark = [pytest.mark.installed, pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return release_packages(tmp_path_factory.mktemp("packages") / "made")


@pytest.fixture(scope="module", params=PYTHONS, ids=lambda path: Path(path).name)
def core(
    request: pytest.FixtureRequest, packages: Path, tmp_path_factory: pytest.TempPathFactory
) -> Installed:
    place = tmp_path_factory.mktemp("core") / "environment"
    found = empty_environment(place, packages, request.param)
    found.install("core", "snaploom")
    return found


def test_core_declares_validates_and_plans(core: Installed, tmp_path: Path) -> None:
    assert "Weaves declared data sources" in core.run("snaploom", "--help")
    core.run("snaploom", "init", "shop", folder=tmp_path)
    assert "0 errors" in core.run("snaploom", "validate", "shop", folder=tmp_path)
    plan = core.run("snaploom", "plan", "orders-wide", "-f", "shop", "--offline", folder=tmp_path)
    assert "customer  by customer-id" in plan


def test_core_runs_nothing_and_names_what_is_missing(core: Installed, tmp_path: Path) -> None:
    core.run("snaploom", "init", "shop", folder=tmp_path)
    printed = core.run("snaploom", "run", "orders-wide", "-f", "shop", folder=tmp_path, code=1)
    assert "pip install 'snaploom[spark]'" in printed
    assert "Traceback" not in printed


def test_core_names_the_package_of_the_clusters_commands(core: Installed) -> None:
    assert "pip install snaploom-operator" in core.run("snaploom", "status", code=2)


def test_operator_is_installed_as_the_page_shows(packages: Path, tmp_path: Path) -> None:
    folder = tmp_path / "release"
    shutil.copytree(packages, folder, copy_function=os.symlink)  # images are large
    for beginning in ("sha256sum", "python3 -m venv cluster"):
        (block,) = [
            each.text
            for each in blocks_of(DOCS / "how-to" / "install.md")
            if each.language == "bash" and each.text.startswith(beginning)
        ]
        run_command(f"set -e; {block}", folder)
    found = Installed(folder / "cluster", packages)
    assert "status" in found.run("snaploom", "--help")
    assert "allow" in found.run("snaploom", "operator", "settings")
    assert "Show the status" in found.run("kubectl-snaploom", "status", "--help")
    installed = found.run("python", "-m", "pip", "list")
    assert not {"pyspark", "pyarrow", "numpy"} & set(installed.split())


@pytest.fixture(scope="module")
def with_spark(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    found = empty_environment(tmp_path_factory.mktemp("spark") / "environment", packages)
    found.install("spark", "snaploom")
    return found


def test_tutorial_is_done_from_the_wheel(with_spark: Installed, tmp_path: Path) -> None:
    """All that it shows: the model, runs, faults, reading in Python, and the end."""
    run_blocks(DOCS / "tutorial.md", tmp_path, with_spark.programs)


@pytest.mark.parametrize("notebook", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_code_of_a_notebook_is_done_from_the_wheel(notebook, with_spark, tmp_path):
    folder = copy_example("customer", tmp_path).checkout / "examples" / "notebooks"
    folder.mkdir()
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    code = ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    (folder / "cells.py").write_text("\n\n".join(code))
    with_spark.run("python", "cells.py", folder=folder)
