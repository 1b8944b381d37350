"""Take `snaploom.plugins` away, and everything else works as before."""

import ast
import os
import pkgutil
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest
from support.skipping.withoutinterop import without

import snaploom
import snaploom_operator
from snaploom import installed, ondemand
from snaploom.errors import IndexNotPossible, KeyUnavailable
from snaploom.files.stores import UnsupportedStore
from snaploom.installed import EXTRAS, PackageMissing, missing_package
from snaploom.skipping.formats import parquetfiles
from snaploom.skipping.lifecycle import declaration, interchange
from snaploom.skipping.stores import catalog
from snaploom.skipping.stores import folder as store_forms
from snaploom.skipping.stores.folder import registered_forms

REPOSITORY = Path(__file__).parents[3]
PACKAGES = (snaploom, snaploom_operator)
TESTS = ("tests/unit/contracts/test_versions.py", "tests/unit/jobs", "tests/unit/skipping/stores")
"""Tests of packages that plug-ins extend."""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the library, but its plug-ins."""
    folder = tmp_path_factory.mktemp("bare")
    ignored = shutil.ignore_patterns("plugins", "__pycache__")
    shutil.copytree(Path(snaploom.__file__).parent, folder / "snaploom", ignore=ignored)
    return folder


def run(*arguments: str, path: Path = REPOSITORY / "tests", code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return " ".join((done.stdout + done.stderr).split())


def command(bare: Path, *arguments: str | Path, code: int = 0) -> str:
    return run("-m", "snaploom.cli.main", *map(str, arguments), path=bare, code=code)


def test_no_module_outside_names_a_plug_in_in_an_import() -> None:
    root = Path(snaploom.__file__).parent
    files = [*Path(snaploom_operator.__file__).parent.rglob("*.py"), *root.rglob("*.py")]
    imported = {
        name
        for file in files
        if root / "plugins" not in file.parents
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (getattr(node, "module", None), *(alias.name for alias in node.names))
    }
    assert "snaploom.files.stores" in imported
    assert not [name for name in imported if name and f"{name}.".startswith("snaploom.plugins.")]


@pytest.mark.slow
def test_every_other_module_is_imported_without_it(bare: Path) -> None:
    names = [
        name
        for package in PACKAGES
        for _, name, _ in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if not f"{name}.".startswith(("snaploom.plugins.", "snaploom.orchestrators."))
    ]
    assert len(names) > 350
    run("-c", "\n".join(f"import {name}" for name in names), path=bare)


def test_commands_of_the_core_work_without_it(bare: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    assert "Publish what is due in a span" in command(bare, "--help")
    command(bare, "init", model)
    command(bare, "validate", model)
    assert "orders" in command(bare, "plan", "orders-wide", "-f", model, "--offline")


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_run_publishes_without_it(bare: Path, tmp_path: Path) -> None:
    command(bare, "init", tmp_path / "model")
    command(bare, "run", "orders-wide", "-f", tmp_path / "model")
    assert "2024-05-02" in command(bare, "snapshots", "orders-wide", "-f", tmp_path / "model")


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        (("page", "orders-wide", "--to", "site"), "the commands of site are not installed"),
        (("index", "sort", "/data"), "the commands of advice are not installed"),
        (("init", "NEW", "--from", "/data"), "discovery of data is not installed"),
    ],
)
def test_what_is_missing_is_one_error(bare, tmp_path, arguments, missing):
    given = [str(tmp_path / "new") if each == "NEW" else each for each in arguments]
    code = 1 if arguments[0] == "init" else 2
    assert missing in command(bare, *given, code=code)


@pytest.mark.slow
@pytest.mark.long
def test_tests_of_other_packages_pass_without_it() -> None:
    plugin = "support.skipping.withoutinterop"
    run("-m", "pytest", "-q", "--quick", "-p", plugin, "-p", "no:cacheprovider", *TESTS)


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module in (catalog, interchange, parquetfiles):
        monkeypatch.setattr(module, "entry_points", without(metadata.entry_points))
    monkeypatch.setattr(
        "snaploom.skipping.stores.folder.entry_points", without(metadata.entry_points)
    )
    registered_forms.cache_clear()
    yield
    registered_forms.cache_clear()


@pytest.mark.usefixtures("absent")
def test_form_that_is_not_registered_names_its_package() -> None:
    with pytest.raises(IndexNotPossible, match="the form XSKIPPER of a store is not") as raised:
        declaration.require_form("XSKIPPER")
    assert "snaploom.plugins" in str(raised.value.hint)
    assert raised.value.expected == "NATIVE"


@pytest.mark.usefixtures("absent")
def test_scheme_that_is_not_registered_names_its_extra() -> None:
    with pytest.raises(UnsupportedStore, match="opensearch: here") as raised:
        catalog.open_base("opensearch://search:9200")
    assert "pip install 'snaploom[opensearch]'" in str(raised.value.hint)


@pytest.mark.usefixtures("absent")
def test_key_service_that_is_not_registered_names_its_group() -> None:
    with pytest.raises(KeyUnavailable, match="not registered here") as raised:
        parquetfiles.open_keys("vault+https://vault:8200/v1/transit")
    assert "snaploom.skipping.kms" in str(raised.value.hint)


@pytest.mark.usefixtures("absent")
def test_exchange_that_is_not_registered_names_its_package() -> None:
    assert interchange.registered_interchange() is None
    with pytest.raises(IndexNotPossible, match="neither imported nor exported") as raised:
        interchange.interchange()
    assert "snaploom.plugins" in str(raised.value.hint)


def test_store_whose_client_is_not_installed_names_its_extra(monkeypatch):
    entry = metadata.EntryPoint("opensearch", "no_such_client:open_base", catalog.ENTRY_POINTS)
    monkeypatch.setattr(catalog, "entry_points", lambda **_: metadata.EntryPoints([entry]))
    with pytest.raises(UnsupportedStore, match="opensearch: here") as raised:
        catalog.open_base("opensearch://search:9200")
    assert "no_such_client" in str(raised.value.found)


BROKEN: dict[str, tuple[ModuleType, str, Callable[[], object]]] = {
    "form": (store_forms, "XSKIPPER", registered_forms.__wrapped__),
    "exchange": (interchange, interchange.EXCHANGED, interchange.registered_interchange),
    "key service": (parquetfiles, "vault", lambda: parquetfiles.open_keys("vault+https://vault")),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_package_that_cannot_be_loaded_is_named(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, use = BROKEN[kind]
    entry = metadata.EntryPoint(name, "no_such_package:found", module.ENTRY_POINTS)
    monkeypatch.setattr(module, "entry_points", lambda **_: metadata.EntryPoints([entry]))
    with pytest.raises(IndexNotPossible, match="cannot be loaded") as raised:
        use()
    assert "no_such_package" in str(raised.value.found)


# What needs a package that is not installed names the extra that brings it.


def no_module(name):
    return ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.parametrize("name", EXTRAS)
def test_missing_package_names_its_extra(name):
    error = missing_package(no_module(f"{name}.inner"))
    assert error.hint == f"pip install 'snaploom[{EXTRAS[name]}]'"


def test_cause_behind_another_error_is_found():
    error = ImportError("cannot import a command")
    error.__cause__ = no_module("pyarrow")
    assert missing_package(error) is not None


@pytest.mark.parametrize("error", [no_module("snaploom.typo"), ImportError("broken"), OSError()])
def test_other_failures_are_not_taken_for_it(error):
    assert missing_package(error) is None


@pytest.mark.parametrize(
    ("name", "error"), [("pyspark", PackageMissing), ("snaploom.typo", ModuleNotFoundError)]
)
def test_of_late_imports_only_a_missing_package_names_the_extra(monkeypatch, name, error):
    def fails(_):
        raise no_module(name)

    monkeypatch.setattr(installed, "import_module", fails)
    with pytest.raises(error) as raised:
        _ = ondemand.weave_in_session
    assert raised.type is error
