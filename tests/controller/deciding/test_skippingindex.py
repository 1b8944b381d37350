"""The state of an index follows its runs; queries use what was there until a build ends well."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.operator.observations import (
    DECLARATIONS,
    RUN,
    SETTINGS,
    a_report,
    a_run,
    an_application,
    an_end,
    an_index,
    at,
    conditions_of,
    ready,
)

from snaploom.models.run import CurrentRun, LastRun
from snaploom.models.skippingindex import IndexedFiles, IndexState, SkippingIndexStatus
from snaploom_operator.decide.decide import decide
from snaploom_operator.decision import Decision, ObservedIndex
from snaploom_operator.objects import Application, ApplicationState, FoundReport

FACTS = {
    "state": "active",
    "files": {"indexed": 7, "stale": 0, "missing": 0},
    "bytes": 100,
    "lastRefreshed": at(-3),
}


def status(
    last: LastRun | None = None, current: CurrentRun | None = None, **changes: Any
) -> SkippingIndexStatus:
    """Of an index that is built."""
    built = SkippingIndexStatus(
        state=IndexState.ACTIVE,
        files=IndexedFiles(indexed=7, stale=0, missing=0),
        last_refreshed=at(-50),
        realised=DECLARATIONS,
        last_run=last or an_end(),
        current_run=current,
    )
    return built.model_copy(update=changes)


def decided(
    state: SkippingIndexStatus | None,
    application: Application | None = None,
    report: FoundReport | None = None,
    **spec: Any,
) -> Decision:
    observed = an_index(state, **spec)
    runs = replace(
        observed.runs,
        applications=(application,) if application is not None else (),
        reports={RUN: report} if report is not None else {},
    )
    return decide(replace(observed, runs=runs), SETTINGS)


def state_of(decision: Decision) -> IndexState | None:
    assert isinstance(decision.status, SkippingIndexStatus)
    return decision.status.state


RUNNING = an_application(ApplicationState.RUNNING)
FLYING = a_run("Running")
NOT_BUILT = status(None, FLYING, state=IndexState.EMPTY, files=None, last_refreshed=None,
                   realised=None, last_run=None)  # fmt: skip


@pytest.mark.parametrize(
    ("before", "report", "state"),
    [
        pytest.param(NOT_BUILT, None, IndexState.CREATING, id="first build"),
        pytest.param(status(None, FLYING), None, IndexState.REFRESHING, id="refresh"),
        pytest.param(
            status(None, FLYING, realised="others"), None, IndexState.UPDATING, id="settings"
        ),
        pytest.param(
            status(an_end("Failed"), FLYING), None, IndexState.RECOVERING, id="after a failure"
        ),
        pytest.param(
            status(None, FLYING), a_report("RUNNING", index=FACTS | {"state": "vacuuming"}),
            IndexState.VACUUMING, id="as the job reports",
        ),
    ],
)  # fmt: skip
def test_state_shows_what_the_current_run_does(
    before: SkippingIndexStatus, report: FoundReport | None, state: IndexState
) -> None:
    assert state_of(decided(before, RUNNING, report)) is state


def test_index_is_empty_until_its_first_run_is_at_work() -> None:
    decision = decided(None)
    assert state_of(decision) is IndexState.EMPTY
    assert ready(decision) == ("False", "RunSubmitted")
    assert conditions_of(decision)["IndexFresh"] == ("False", "NeverBuilt")


def test_built_index_is_active_with_its_counts() -> None:
    done = an_application(ApplicationState.COMPLETED)
    decision = decided(NOT_BUILT, done, a_report(index=FACTS))
    after = decision.status
    assert isinstance(after, SkippingIndexStatus)
    assert (after.state, after.bytes) == (IndexState.ACTIVE, 100)
    assert after.files == IndexedFiles(indexed=7, stale=0, missing=0)
    assert after.last_refreshed == at(-3)
    assert ready(decision) == ("True", "IndexActive")
    assert conditions_of(decision)["IndexFresh"] == ("True", "Fresh")


@pytest.mark.parametrize(
    ("done", "work"),
    [
        pytest.param(["built: 7 files"], "built: 7 files", id="work"),
        pytest.param([], "the index was up to date", id="nothing to do"),
    ],
)
def test_event_of_a_run_reports_what_it_did_to_the_index(done: list[str], work: str) -> None:
    ended = an_application(ApplicationState.COMPLETED)
    decision = decided(NOT_BUILT, ended, a_report(index=FACTS | {"done": done}))
    assert [note.message for note in decision.notes] == [f"run {RUN} succeeded: {work}"]


def test_failed_refresh_leaves_the_index_ready() -> None:
    failed = an_application(ApplicationState.FAILED)
    report = a_report("FAILED", reason="IndexBusy", retryable=False, message="busy")
    decision = decided(status(None, FLYING), failed, report)
    assert state_of(decision) is IndexState.FAILED
    assert ready(decision) == ("True", "RunRefused")


def test_failed_first_build_is_not_ready() -> None:
    failed = an_application(ApplicationState.FAILED)
    report = a_report("FAILED", reason="TargetNotIndexable", retryable=False)
    decision = decided(NOT_BUILT, failed, report)
    assert state_of(decision) is IndexState.FAILED
    assert conditions_of(decision)["Stalled"] == ("True", "RunRefused")


def test_index_that_is_not_enabled_is_kept_and_reported() -> None:
    decision = decided(status(), enabled=False)
    assert ready(decision) == ("True", "Disabled")


@pytest.mark.parametrize(
    ("files", "is_overdue", "fresh"),
    [
        pytest.param((7, 0, 0), False, ("True", "Fresh"), id="covers its target"),
        pytest.param((7, 1, 0), False, ("False", "Stale"), id="files changed"),
        pytest.param((7, 0, 1), False, ("False", "Stale"), id="files came"),
        pytest.param((7, 0, 0), True, ("False", "Stale"), id="the output published"),
    ],
)
def test_index_is_fresh_while_it_covers_its_target(
    files: tuple[int, int, int], is_overdue: bool, fresh: tuple[str, str]
) -> None:
    indexed, stale, missing = files
    counts = IndexedFiles(indexed=indexed, stale=stale, missing=missing)
    observed: ObservedIndex = an_index(status(files=counts))
    decision = decide(replace(observed, is_overdue=is_overdue), SETTINGS)
    assert conditions_of(decision)["IndexFresh"] == fresh
    assert ready(decision) == ("True", "IndexActive")


def test_age_limit_counts_from_the_last_refresh() -> None:
    freshness = {"maxAge": {"minute": 1}}
    assert ready(decided(status(), freshness=freshness)) == ("True", "IndexActive")
    late = decided(status(last_refreshed=at(-61)), freshness=freshness)
    assert ready(late) == ("False", "Stale")


@pytest.mark.parametrize(("trigger", "is_run"), [("ON_PUBLISH", True), ("MANUAL", False)])
def test_an_index_follows_the_output_only_when_it_is_to(trigger: str, is_run: bool) -> None:
    observed = an_index(status(), refresh={"mode": "AUTO", "trigger": trigger})
    decision = decide(replace(observed, upstream="a publication"), SETTINGS).status
    assert isinstance(decision, SkippingIndexStatus)
    assert (decision.current_run is not None) is is_run
