"""Exit codes of one run and of several."""

import pytest

from snaploom.errors import Interrupted, RootEmpty, SnaploomError
from snaploom.models.common import EpochNanos
from snaploom.models.findings import InvalidDeclarations, make_finding
from snaploom.run.declarations import combined_exit_code, report_exit_code, unstarted_report

INVALID = InvalidDeclarations([make_finding("SL191", "this is not a time", path="--now")])


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([], 0),
        ([0, 0], 0),
        ([0, 1], 1),
        ([3, 0, 3], 3),
        ([2, 3], 1),
        ([1, 130], 130),
        ([4], 4),
    ],
)
def test_several_codes_become_one(codes, expected) -> None:
    assert combined_exit_code(codes) == expected


@pytest.mark.parametrize(
    ("error", "code"),
    [(SnaploomError("x"), 1), (Interrupted("x"), 130), (INVALID, 2), (RootEmpty("x"), 5)],
)
def test_report_of_a_run_that_never_began_has_the_code_of_its_error(error, code) -> None:
    report = unstarted_report("wide", EpochNanos(0), error)
    assert report_exit_code(report) == error.exit_code == code
