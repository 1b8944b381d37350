"""Comet gives the rows of Spark over the engine's own tests."""

import pytest
from support.weaving.oldspark import comet_jar, run_tests
from support.weaving.sparksession import ACCELERATED

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3600)]

SUITES = (
    "engine/test_fold",
    "engine/test_rowcounts",
    "jobs/test_snapshots_together",
    "jobs/test_oracle",
    "skipping/enable/test_collected_again",
)


@pytest.mark.parametrize("suite", SUITES)
def test_suite_passes_with_comet(suite: str) -> None:
    ended = run_tests(f"tests/{suite}.py", **{ACCELERATED: str(comet_jar())})
    assert ended.returncode == 0, ended.stdout[-8000:] + ended.stderr[-2000:]
    assert "passed" in ended.stdout
