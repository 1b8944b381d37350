"""What needs a package that is not installed names the extra that brings it."""

import pytest

from snaploom import ondemand
from snaploom.extras import EXTRAS, PackageMissing, missing_package


def absent(name):
    return ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.parametrize("name", EXTRAS)
def test_missing_package_names_its_extra(name):
    error = missing_package(absent(f"{name}.inner"))
    assert error is not None
    assert error.hint == f"pip install 'snaploom[{EXTRAS[name]}]'"


def test_cause_behind_another_error_is_found():
    error = ImportError("cannot import a command")
    error.__cause__ = absent("pyarrow")
    assert missing_package(error) is not None


@pytest.mark.parametrize("error", [absent("snaploom.typo"), ImportError("broken"), OSError()])
def test_other_failures_are_not_taken_for_it(error):
    assert missing_package(error) is None


def test_what_is_imported_late_names_the_extra(monkeypatch):
    def fails(_):
        raise absent("pyspark")

    monkeypatch.setattr(ondemand, "import_module", fails)
    with pytest.raises(PackageMissing):
        _ = ondemand.weave_in_session


def test_other_failures_of_late_imports_stay_as_they_are(monkeypatch):
    def fails(_):
        raise absent("snaploom.typo")

    monkeypatch.setattr(ondemand, "import_module", fails)
    with pytest.raises(ModuleNotFoundError, match="typo"):
        _ = ondemand.weave_in_session
