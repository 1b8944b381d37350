"""`make test-changed` runs the nearest tests that a change can break, and no others."""

import tomllib
from pathlib import Path

import pytest
from support.runner.changedtests import REPOSITORY, TESTS, files_to_test, needs, within

_CRON = REPOSITORY / "sparkjobs/src/snaploom/plan/times.py"
_TEST_OF_CRON = TESTS / "unit/planning/test_cron.py"
_TEST_OF_TYPES = TESTS / "unit/skipping/indexes/test_builders.py"

# All read the imports of all files first, which takes seconds once.
pytestmark = pytest.mark.slow


def chosen(*names: str) -> dict[Path, int]:
    return files_to_test({REPOSITORY / name for name in names})


def test_a_changed_module_runs_the_tests_that_import_it_and_no_others() -> None:
    found = files_to_test({_CRON})
    assert found[_TEST_OF_CRON] == 1
    assert _TEST_OF_TYPES not in found


def test_a_module_that_is_imported_by_another_counts() -> None:
    assert files_to_test({_CRON})[TESTS / "unit/planning/test_recurrence.py"] > 1


def test_a_command_counts_where_it_is_run() -> None:
    found = chosen("sparkjobs/src/snaploom/cli/run.py")
    assert found[TESTS / "plugins/lineage/test_lineage.py"] < 20


def test_a_command_and_a_late_import_of_a_plug_in_count() -> None:
    found = chosen("sparkjobs/src/snaploom/plugins/advice/sort.py")
    assert found[TESTS / "plugins/advice/test_sort_outputs.py"] < 20


def test_a_module_that_is_registered_by_an_entry_point_counts() -> None:
    found = chosen("sparkjobs/src/snaploom/plugins/xskipper/indexstore.py")
    assert TESTS / "unit/skipping/lifecycle/test_declaration.py" in found


def test_a_changed_entry_point_is_the_module_that_it_names() -> None:
    text = (REPOSITORY / "pyproject.toml").read_text("utf-8")
    before = tomllib.loads(text.replace('TOKENS = "snaploom.', 'TOKENS = "other.'))
    tokens = chosen("sparkjobs/src/snaploom/skipping/indexes/bloomfilter.py")
    assert files_to_test({REPOSITORY / "pyproject.toml"}, before) == tokens


def test_settings_of_linters_run_nothing_and_those_of_pytest_everything() -> None:
    before = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
    before["tool"]["ruff"] = {}
    assert files_to_test({REPOSITORY / "pyproject.toml"}, before) == {}
    before["tool"]["pytest"] = {}
    assert len(files_to_test({REPOSITORY / "pyproject.toml"}, before)) > 300


def test_a_test_that_starts_programs_is_the_last_of_the_product() -> None:
    assert set(files_to_test({_CRON}).values()) > {1, 20}


def test_what_serves_all_runs_every_test_but_those_that_run_apart() -> None:
    found = chosen("tests/conftest.py")
    assert {_TEST_OF_CRON, _TEST_OF_TYPES} <= found.keys()
    assert TESTS / "cluster/test_chaos_storage.py" not in found
    assert not [path for path in found if TESTS / "others" in path.parents]


def test_a_fixture_that_starts_a_server_runs_the_tests_that_ask_for_it() -> None:
    found = chosen("tests/support/weaving/sparkfixtures.py")
    assert found[TESTS / "engine/test_failures.py"] == 1
    assert _TEST_OF_CRON not in found


def test_a_changed_page_runs_the_tests_of_pages() -> None:
    found = chosen("docs/tutorial.md")
    assert TESTS / "documentation/test_pages.py" in found
    assert _TEST_OF_CRON not in found


@pytest.mark.parametrize("name", ["crds/outputdatasets.yaml", "docs/reference/cli.md"])
def test_what_is_generated_runs_nothing(name: str) -> None:
    assert chosen(name) == {}


def test_a_file_that_is_no_python_runs_the_tests_of_what_names_it() -> None:
    found = chosen("charts/snaploom/values.schema.json")
    assert any("charts" in path.parts for path in found)
    assert _TEST_OF_CRON not in found


def test_nothing_changed_runs_nothing() -> None:
    assert chosen() == {}


def test_nearest_tests_come_first_and_the_rest_is_left() -> None:
    found = files_to_test({_CRON})
    some, targets = within(found, 5.0)
    assert found[some[0]] == 1
    assert 0 < len(some) < len(found)
    assert "components" not in targets


def test_needs_are_those_of_what_a_test_reaches() -> None:
    assert needs(_TEST_OF_CRON) == set()
    assert needs(TESTS / "unit/jobs/test_driverlock.py") == {"java"}
    assert "components" in needs(TESTS / "cluster/test_objects.py")
