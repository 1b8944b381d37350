"""`make test-changed` runs every test that a change can break."""

from pathlib import Path

import pytest
from support.runner.testimports import REPOSITORY, TESTS, everything_read, files_to_test

_CRON = REPOSITORY / "sparkjobs/src/snaploom/planning/cron.py"
_TEST_OF_CRON = TESTS / "unit/planning/test_cron.py"
_TEST_OF_INDEXES = TESTS / "unit/skipping/indexes/test_builders.py"


def chosen(*changed: Path) -> set[Path]:
    return set(files_to_test(frozenset(changed)))


@pytest.mark.slow
def test_a_changed_module_runs_the_tests_that_import_it_and_no_others() -> None:
    assert _TEST_OF_CRON in chosen(_CRON)
    assert _TEST_OF_INDEXES not in chosen(_CRON)


def test_a_module_that_is_imported_by_another_counts() -> None:
    intervals = TESTS / "unit/planning/test_intervals.py"
    imported = everything_read(intervals)
    assert _CRON in imported


def test_a_module_that_is_registered_by_an_entry_point_counts() -> None:
    declarations = TESTS / "unit/skipping/lifecycle/test_declaration.py"
    form = REPOSITORY / "sparkjobs/src/snaploom/interop/xskipper/indexstore.py"
    assert form in everything_read(declarations)


def test_a_test_that_starts_programs_depends_on_the_whole_product() -> None:
    commands = TESTS / "end_to_end/test_starter.py"
    assert REPOSITORY / "sparkjobs/src/snaploom/skipping/indexes/minmax.py" in everything_read(
        commands
    )


@pytest.mark.parametrize(
    "name", ["pyproject.toml", "tests/conftest.py", "tests/support/weaving/sparkfixtures.py"]
)
def test_what_has_no_imports_or_serves_all_runs_every_test(name: str) -> None:
    assert chosen(REPOSITORY / name) == set(TESTS.rglob("test_*.py"))


@pytest.mark.slow
def test_a_changed_page_runs_the_tests_of_pages() -> None:
    assert chosen(REPOSITORY / "docs/tutorial.md") == set(
        (TESTS / "documentation").rglob("test_*.py")
    )


def test_nothing_changed_runs_nothing() -> None:
    assert chosen() == set()
