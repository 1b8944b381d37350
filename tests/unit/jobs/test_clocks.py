"""A clock that is behind the log: reported, refused where it counts, and never written."""

from __future__ import annotations

import pytest
from support.declared.declarations import files, model, parsed

from snaploom.models.common import EpochNanos
from snaploom.output.state import EMPTY, Ended, FolderState, Version
from snaploom.plan.bundles import bundle_for
from snaploom.run.weaving.preflight import ClockBehind, check_clock, never_before, newest_moment

HOUR = 3600 * 10**9


def at(hours: float) -> EpochNanos:
    return EpochNanos(int(hours * HOUR))


PUBLISHED = FolderState(
    versions={at(n): Version(at(n), n, at(n + 1), "p", "s", "m") for n in (1, 3)},
    ended=(Ended(at(2), "p", 2, 4, "maxSnapshotAge", at(5)),),
)


def test_newest_moment_is_that_of_publications_and_deletions() -> None:
    assert newest_moment(PUBLISHED) == at(5)
    assert newest_moment(EMPTY) is None


def test_what_is_written_is_never_dated_before_the_log() -> None:
    assert never_before(lambda: at(4), at(5))() == at(5)
    assert never_before(lambda: at(6), at(5))() == at(6)
    assert never_before(lambda: at(4), None)() == at(4)


@pytest.mark.parametrize(("hours", "warnings"), [(4.0, 1), (4.99, 0), (5.0, 0), (9.0, 0)])
def test_clock_that_is_behind_is_reported(hours: float, warnings: int) -> None:
    bundle = bundle_for("OutputDataset", "wide", parsed(model()))
    assert len(check_clock(bundle, PUBLISHED, at(hours))) == warnings
    assert check_clock(bundle, EMPTY, at(hours)) == ()


def test_clock_that_is_behind_may_not_date_snapshots() -> None:
    changes = {"snapshot": {"fromReadTime": {}}}
    raws = [files("customer", **changes), *model()[1:]]
    bundle = bundle_for("OutputDataset", "wide", parsed(raws))
    assert check_clock(bundle, PUBLISHED, at(6)) == ()
    with pytest.raises(ClockBehind, match="customer"):
        check_clock(bundle, PUBLISHED, at(4))
