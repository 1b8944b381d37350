"""The library runs on the oldest Spark that is supported, where tables of Iceberg and Delta are."""

import pytest
from support.weaving.oldspark import run_tests

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

FILES = ("sources", "outputs", "catalogs", "stores", "sql")


def test_tables_are_published_and_read_on_the_oldest_spark() -> None:
    ended = run_tests(*(f"tests/others/oldspark/{name}.py" for name in FILES))
    assert ended.returncode == 0, ended.stdout[-8000:] + ended.stderr[-2000:]
    assert "passed" in ended.stdout
