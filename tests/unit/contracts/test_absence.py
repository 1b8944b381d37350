"""Take `snaploom.plugins` away, and everything else works as before."""

import os
import pkgutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest
from support.skipping.withoutinterop import without

import snaploom
from snaploom.errors import IndexNotPossible, KeyUnavailable
from snaploom.files.stores import UnsupportedStore
from snaploom.skipping.formats import parquetfiles
from snaploom.skipping.lifecycle import declaration, interchange
from snaploom.skipping.stores import catalog
from snaploom.skipping.stores import folder as store_forms
from snaploom.skipping.stores.folder import registered_forms

REPOSITORY = Path(__file__).parents[3]
CORE = ("cli", "project", "reader", "run", "skipping")
"""What might need it: all other packages are below."""
TESTS = tuple(
    f"tests/unit/skipping/{folder}"
    for folder in (
        "evaluation",
        "formats",
        "lifecycle",
        "stores",
        "spark/test_decision.py",
    )
)


def run(*arguments: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "tests")}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_every_module_is_imported_without_it() -> None:
    names = [
        name
        for _, name, _ in pkgutil.walk_packages(snaploom.__path__, "snaploom.")
        if name.split(".")[1] in CORE
    ]
    imports = "\n".join(f"import {name}" for name in names)
    run("-c", f"from support.skipping.withoutinterop import take_away\ntake_away()\n{imports}")


@pytest.mark.slow
def test_tests_of_skipping_pass_without_it() -> None:
    run(
        "-m",
        "pytest",
        "-q",
        "-p",
        "support.skipping.withoutinterop",
        "-p",
        "no:cacheprovider",
        *TESTS,
    )


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


def test_store_whose_client_is_not_installed_names_its_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
