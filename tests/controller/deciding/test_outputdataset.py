"""The status of an output: ready or not, valid, planned, fresh; never more than 32 KB."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.declared.declarations import files, key, output, parsed, relationship
from support.operator.observations import (
    DECLARATIONS,
    RUN,
    SETTINGS,
    UID,
    a_report,
    a_run,
    an_application,
    an_end,
    an_output,
    at,
    conditions_of,
    observing,
    ready,
    with_status,
)

from snaploom.models.findings import Finding, Severity
from snaploom.models.outputdataset import OutputDataset, OutputDatasetStatus
from snaploom.models.report import LatestSnapshot, PublishedSnapshot, Report
from snaploom.models.run import LastRun, Submitter
from snaploom.plan.bundles import bundle_for
from snaploom.plan.plan import plan_offline
from snaploom_operator.conditions import MOST_BYTES, fit_items, fit_text, fit_texts
from snaploom_operator.decide.decide import decide
from snaploom_operator.decide.readiness import GRACE_SECONDS
from snaploom_operator.decide.runview import DecideSettings
from snaploom_operator.decision import (
    Create,
    Decision,
    Delete,
    Ensure,
    ObservedOutput,
    OwnedConfigMap,
    Refusal,
)
from snaploom_operator.objects import ApplicationState, FoundReport, later
from snaploom_operator.settings import OperatorSettings


def a_wide_output(joins: int, name_length: int = 10) -> ObservedOutput:
    """An output of so many joins to sources with names of so many characters."""
    names = [f"s{number:03}".ljust(name_length, "x") for number in range(joins)]
    others = [{"dataSource": name, "fieldName": name} for name in names]
    raws = [
        files("customer"),
        *(files(name) for name in names),
        relationship("all", (["customer", *names], [key("id")])),
        output(
            **{
                "dataModel.otherDataSources": others,
                "dataModel.dataRelationships": [{"name": "all"}],
            }
        ),
    ]
    raws[-1]["metadata"] |= {"uid": UID, "generation": 3}
    for raw in raws:
        raw["metadata"]["namespace"] = "shop"
    resources = parsed(raws)
    resource = resources[-1]
    assert isinstance(resource, OutputDataset)
    bundle = bundle_for("OutputDataset", "wide", resources)
    return replace(an_output(), resource=resource, bundle=bundle, plan=plan_offline(bundle))


def the_largest_report() -> FoundReport:
    """A report with as much of everything as its model allows a status to show."""
    long = "é" * 1000
    source = {"fieldName": long, "source": long, "time": at(0), "fingerprint": long}
    excluded = {"reason": "SNAPSHOT_MISSING", "message": long}
    join = {"in": 10**12, "out": 10**12, "matched": 10**12, "nullKeys": 10**12}
    skipped = {"time": at(0), "partition": long, "reason": "RETENTION", "message": long * 20}
    newest = {
        "time": at(0),
        "publishedAt": at(0),
        "partition": long,
        "rows": 10**15,
        "files": 10**9,
        "bytes": 10**15,
        "sources": [source] * 50,
        "excluded": [excluded | {"fieldName": f"{number}{long}"} for number in range(50)],
        "joins": [join | {"child": f"{number}{long}"[:1000]} for number in range(50)],
        "warnings": [f"{number}{long}"[:1000] for number in range(50)],
    }
    return FoundReport(
        RUN,
        Report.parse(
            {
                "output": "wide",
                "uid": UID,
                "runId": RUN,
                "phase": "FAILED",
                "reason": "R" * 1000,
                "message": long * 30,
                "startedAt": at(-100),
                "finishedAt": at(-1),
                "skipped": [skipped] * 100,
                "failed": [skipped] * 100,
                "snapshotCount": 10**9,
                "newest": newest,
                "published": [{"time": at(0), "rows": 10**15}] * 50,
                "manifest": {
                    "uri": "s3://" + "é" * 2000,
                    "sequence": 10**9,
                    "fixed": {f"key-{number}": long for number in range(200)},
                },
            }
        ),
    )


def finding(code: str, message: str = "wrong", severity: Severity = Severity.ERROR) -> Finding:
    return Finding(
        code=code,
        severity=severity,
        resource="OutputDataset/wide",
        path="spec.x",
        message=message,
        hint="repair it",
    )


def snapshot(published: float) -> LatestSnapshot:
    report = a_report(newest={
        "time": "2020-01-01T00:00:00Z", "publishedAt": at(published), "partition": "data/x",
        "rows": 1, "files": 1, "bytes": 1,
    }).report  # fmt: skip
    assert report.newest is not None
    return report.newest


def published(last: LastRun, age: float = -50, **run: Any) -> ObservedOutput:
    status = OutputDatasetStatus(
        realised=DECLARATIONS, last_run=last, latest_snapshot=snapshot(age)
    )
    return an_output(status, **run)


@pytest.mark.parametrize(
    ("findings", "faulty", "reason"),
    [
        pytest.param([finding("SL113")], (), "Invalid", id="wrong by itself"),
        pytest.param([finding("SL301")], (), "TreeAmbiguous", id="a tie"),
        pytest.param([finding("SL302")], (), "SourceUnreachable", id="no way to a source"),
        pytest.param(
            [finding("SL130"), finding("SL301"), finding("SL113")], ("DataSource/a",), "Invalid",
            id="the gravest of all",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_stalls_with_the_fix(findings, faulty, reason):
    observed = replace(
        published(an_end()), findings=tuple(findings), faulty=faulty, bundle=None, plan=None
    )
    decision = decide(observed, SETTINGS)
    conditions = conditions_of(decision)
    assert conditions["Ready"] == ("False", reason)
    assert conditions["Stalled"] == ("True", reason)
    is_about_tree = reason in ("TreeAmbiguous", "SourceUnreachable")
    assert conditions["Validated"] == (("True", "Valid") if is_about_tree else ("False", reason))
    assert conditions.get("Planned") == (("False", reason) if is_about_tree else None)
    assert "repair it" in decision.status.conditions[0].message
    assert reason in [note.reason for note in decision.notes]


@pytest.mark.parametrize(
    ("findings", "faulty", "reason"),
    [
        pytest.param((finding("SL130"),), (), "ReferenceMissing", id="something is not there"),
        pytest.param((), ("DataSource/a",), "ReferenceNotReady", id="something else is wrong"),
    ],
)
def test_what_may_still_arrive_is_reported_after_a_grace_period(findings, faulty, reason):
    observed = replace(published(an_end()), findings=findings, faulty=faulty, bundle=None)
    first = decide(observed, SETTINGS)
    assert conditions_of(first)["Ready"] == conditions_of(first)["Validated"] == ("False", reason)
    assert conditions_of(first)["Reconciling"] == ("True", reason)
    assert (first.notes, first.requeue_after) == ((), GRACE_SECONDS)
    kept = observed.resource.model_copy(update={"status": first.status})
    late = replace(observed, resource=kept, now=later(observed.now, GRACE_SECONDS))
    second = decide(late, SETTINGS)
    assert conditions_of(second)["Stalled"] == ("True", reason)
    assert "Reconciling" not in conditions_of(second)
    assert [note.reason for note in second.notes] == [reason]


def test_stalling_is_reported_once() -> None:
    observed = replace(published(an_end()), findings=(finding("SL113"),), bundle=None, plan=None)
    status = decide(observed, SETTINGS).status
    assert isinstance(status, OutputDatasetStatus)
    again = replace(observed, resource=observed.resource.model_copy(update={"status": status}))
    decision = decide(again, SETTINGS)
    assert not decision.notes
    assert decision.status == status


def test_warnings_are_shown_and_do_not_stop_the_work() -> None:
    warned = replace(published(an_end()), findings=(finding("SL176", severity=Severity.WARNING),))
    decision = decide(warned, SETTINGS)
    assert ready(decision) == ("True", "Published")
    validated = next(c for c in decision.status.conditions if c.type == "Validated")
    assert validated.message.startswith("1 warning: spec.x: wrong")


def test_submitter_that_is_not_there_stalls() -> None:
    observed = an_output(submitter="Local")
    decision = decide(observed, SETTINGS)
    assert conditions_of(decision)["Stalled"] == ("True", "SubmitterNotAvailable")
    assert conditions_of(decision)["Validated"] == ("True", "Valid")
    there = observing(observed, available=frozenset({Submitter.LOCAL}))
    assert ready(decide(there, SETTINGS)) == ("False", "RunSubmitted")


@pytest.mark.parametrize(
    ("run", "submitters", "is_local", "expected"),
    [
        pytest.param({}, ["ApacheSpark", "SparkOperator"], False, "ApacheSpark", id="first"),
        pytest.param({}, ["SparkOperator"], True, "Local", id="the operator itself"),
        pytest.param(
            {"submitter": "SparkOperator"}, ["ApacheSpark"], True, "SparkOperator", id="named"
        ),
    ],
)
def test_what_names_no_submitter_is_run_by_the_operators_own(run, submitters, is_local, expected):
    own = OperatorSettings(submitters=tuple(map(Submitter, submitters)))
    settings = DecideSettings.of(own, is_local=is_local)
    observed = observing(an_output(**run), available=frozenset({Submitter(expected)}))
    assert ready(decide(observed, settings)) == ("False", "RunSubmitted")
    nobody = observing(an_output(**run), available=frozenset(Submitter) - {Submitter(expected)})
    assert ready(decide(nobody, settings)) == ("False", "SubmitterNotAvailable")


def test_settings_that_no_application_may_have_stall() -> None:
    decision = decide(an_output(spark={"sparkConf": {"spark.master": "local"}}), SETTINGS)
    assert conditions_of(decision)["Stalled"] == ("True", "Invalid")
    assert "spark.master" in decision.status.conditions[0].message


def test_ready_stays_during_a_run_that_refreshes() -> None:
    status = published(an_end()).resource.status
    flying = an_output(status.model_copy(update={"current_run": a_run("Running")}))
    flying = observing(flying, applications=(an_application(ApplicationState.RUNNING),))
    assert conditions_of(decide(flying, SETTINGS))["Ready"] == ("True", "Published")
    assert "Reconciling" not in conditions_of(decide(flying, SETTINGS))


def test_ready_waits_for_a_run_over_todays_declarations() -> None:
    decision = decide(replace(published(an_end()), declarations="others"), SETTINGS)
    assert ready(decision) == ("False", "RunSubmitted")
    assert conditions_of(decision)["Reconciling"] == ("True", "RunSubmitted")


def test_failed_run_beside_a_fresh_snapshot_leaves_it_ready() -> None:
    failed = an_end("Failed", ended=-10, attempt=2)
    decision = decide(published(failed, freshness={"maxAge": {"hour": 1}}), SETTINGS)
    assert ready(decision) == ("True", "LastRunFailed")
    assert conditions_of(decision)["SnapshotFresh"] == ("True", "Fresh")
    assert decision.requeue_after == pytest.approx(230)


def test_snapshots_of_a_run_that_goes_on_are_shown_and_start_nobody_else() -> None:
    before = published(an_end(), age=-9000)
    flying = with_status(before, current_run=a_run("Running"))
    so_far = a_report("RUNNING", snapshotCount=41, manifest={"uri": "/out/wide/", "sequence": 9})
    running = observing(
        flying,
        applications=(an_application(ApplicationState.RUNNING),),
        reports={RUN: so_far},
    )
    status = decide(running, SETTINGS).status
    assert status.snapshot_count == 41
    assert status.latest_snapshot.published_at == at(-5)
    assert status.manifest == before.resource.status.manifest


def test_run_that_was_lost_leaves_what_it_had_published() -> None:
    lost = a_report("RUNNING", manifest={"uri": "/out/wide/", "sequence": 9})
    ending = with_status(published(an_end()), current_run=a_run("Ending", -61))
    status = decide(observing(ending, reports={RUN: lost}), SETTINGS).status
    assert status.manifest.sequence == 9


def message_of(decision: Decision) -> str:
    return decision.status.conditions[0].message


@pytest.mark.parametrize(
    ("run", "end", "reason", "text"),
    [
        ({}, {"attempt": 0}, "LastRunFailed", "attempt 2 of 4 follows at 2026-01-10T12:01:20Z"),
        ({}, {"attempt": 3}, "RetriesExhausted", "the last of 4 attempts, and none follows until"),
        ({"retry": {"limit": 0}}, {}, "RetriesExhausted", "it was the only attempt, and none"),
        ({}, {"retryable": False}, "RunRefused", "there is none until the declarations"),
        ({"schedule": {"cron": "0 3 * * *"}}, {"attempt": 3, "started_at": at(-20)},
         "RetriesExhausted", "none follows before the scheduled run at 2026-01-11T03:00"),
        ({"suspend": True}, {"attempt": 0}, "LastRunFailed",
         "no retry while run.suspend is set"),
        ({"suspend": True}, {"attempt": 3}, "RetriesExhausted",
         "none follows; no run starts while run.suspend is set"),
        ({"suspend": True}, {"retryable": False}, "RunRefused",
         "there is none; no run starts while run.suspend is set"),
        ({}, {"attempt": 3}, "RetriesExhausted", "`snaploom trigger wide -n shop`"),
    ],
)  # fmt: skip
def test_ready_names_the_attempt_that_follows_a_failed_run(run, end, reason, text):
    decision = decide(published(an_end("Failed", ended=-10, **end), **run), SETTINGS)
    assert ready(decision) == ("True", reason)
    assert text in message_of(decision)
    assert "Stalled" not in conditions_of(decision)


def test_last_failed_attempt_beside_a_snapshot_is_an_event_once() -> None:
    before = published(an_end(), retry={"limit": 0})
    flying = with_status(before, current_run=a_run("Running"))
    failed = a_report("FAILED", retryable=True, reason="SourceNotReadable")
    ended = observing(
        flying,
        applications=(an_application(ApplicationState.COMPLETED),),
        reports={RUN: failed},
    )
    decision = decide(ended, SETTINGS)
    assert [note.reason for note in decision.notes] == ["RunFailed", "RetriesExhausted"]
    assert "none follows" in decision.notes[-1].message
    again = with_status(before, **dict(decision.status))
    assert decide(again, SETTINGS).notes == ()


def test_too_old_a_snapshot_is_not_ready() -> None:
    failed = an_end("Failed", attempt=3)
    stale = published(failed, age=-3601, freshness={"maxAge": {"hour": 1}})
    decision = decide(stale, SETTINGS)
    assert ready(decision) == ("False", "Stale")
    assert conditions_of(decision)["Stalled"] == ("True", "Stale")
    assert conditions_of(decision)["SnapshotFresh"] == ("False", "Stale")
    assert [note.reason for note in decision.notes] == ["Stale"]
    assert "none follows until the declarations change" in message_of(decision)


def test_too_old_a_snapshot_that_is_being_renewed_reconciles() -> None:
    schedule = {"cron": "0 * * * *"}
    last = an_end(ended=-10, started_at=at(-20))
    stale = published(last, age=-3601, freshness={"maxAge": {"hour": 1}}, schedule=schedule)
    decision = decide(stale, SETTINGS)
    assert conditions_of(decision)["Reconciling"] == ("True", "Stale")
    assert [note.reason for note in decision.notes] == ["Stale"]


def test_nothing_to_publish_yet_is_ready_unless_freshness_is_asked_for() -> None:
    status = OutputDatasetStatus(realised=DECLARATIONS, last_run=an_end())
    decision = decide(an_output(status), SETTINGS)
    assert ready(decision) == ("True", "NothingDue")
    assert conditions_of(decision)["SnapshotFresh"] == ("False", "NeverPublished")
    asked = an_output(status, freshness={"maxAge": {"hour": 1}})
    assert ready(decide(asked, SETTINGS)) == ("False", "Stale")


def test_older_report_takes_nothing_from_the_status() -> None:
    newer = {"uri": "/out/wide/", "sequence": 9, "fixed": {"dataFormat": "PARQUET"}}
    report = a_report(manifest=newer, snapshotCount=7)
    status = OutputDatasetStatus(current_run=a_run("Running"))
    done = an_application(ApplicationState.COMPLETED)
    first = decide(
        observing(an_output(status), applications=(done,), reports={RUN: report}), SETTINGS
    ).status
    assert (first.snapshot_count, first.manifest.fixed) == (7, {"dataFormat": "PARQUET"})
    again = first.model_copy(update={"current_run": a_run("Running")})
    older = observing(an_output(again), applications=(done,), reports={RUN: a_report()})
    second = decide(older, SETTINGS).status
    assert second.snapshot_count == 7


def test_plan_is_in_the_status() -> None:
    status = decide(an_output(), SETTINGS).status
    assert status.plan.max_depth == 1
    assert [(join.field_name, join.relationship) for join in status.plan.joins] == [
        ("address", "customer-id")
    ]


def test_whole_plan_is_written_beside_a_status_that_has_only_its_beginning() -> None:
    observed = a_wide_output(60)
    first = decide(observed, SETTINGS)
    (ensure,) = first.actions
    assert isinstance(ensure, Ensure)
    status = first.status
    assert len(status.plan.joins) == 50
    written = observing(
        with_status(observed, plan=status.plan),
        config_maps=(OwnedConfigMap("wide-plan", "1", "", "plan"),),
    )
    assert not decide(written, SETTINGS).actions


def test_plan_config_map_of_another_owner_stalls_and_delays_no_run() -> None:
    refusal = Refusal("NameTaken", "ConfigMap/wide-plan belongs to somebody else")
    decision = decide(replace(a_wide_output(60), refusal=refusal), SETTINGS)
    assert conditions_of(decision)["Stalled"] == ("True", "NameTaken")
    submitting = with_status(a_wide_output(60), current_run=a_run("Submitting"))
    actions = decide(submitting, SETTINGS).actions
    assert [type(action) for action in actions] == [Create, Create, Ensure]


def test_plan_that_fits_again_needs_no_other_place() -> None:
    left = OwnedConfigMap("wide-plan", "1", "", "plan")
    observed = observing(published(an_end()), config_maps=(left,))
    (action,) = decide(observed, SETTINGS).actions
    assert isinstance(action, Delete)
    assert action.name == "wide-plan"


def test_status_of_the_largest_output_and_report_is_small() -> None:
    report = the_largest_report()
    run = a_run("Running", waiting_for="x" * 1000, progress="y" * 1000)
    wide = a_wide_output(120, name_length=200)
    wide = with_status(wide, current_run=run, last_run=an_end("Failed", message="z" * 4000))
    faults = tuple(finding("SL176", "é" * 3000, Severity.WARNING) for _ in range(50))
    wide = replace(wide, findings=faults)
    running = observing(
        wide,
        applications=(an_application(ApplicationState.RUNNING, message="m" * 30_000),),
        reports={RUN: report},
    )
    ended = observing(
        wide, applications=(an_application(ApplicationState.FAILED),), reports={RUN: report}
    )
    for observed in (wide, running, ended):
        status = decide(observed, SETTINGS).status
        assert len(status.dump_json().encode()) < MOST_BYTES


def size(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode())


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(10, 60))
def test_cut_text_fits_and_is_the_beginning(text: str, most: int) -> None:
    cut = fit_text(text, most)
    assert size(cut) <= most
    assert cut == text or (cut.endswith("…") and text.startswith(cut[:-1]))
    assert cut == text or size(text) > most
    assert fit_text(cut, most) == cut


@given(st.lists(st.integers(0, 10**9), max_size=20), st.integers(0, 500))
def test_cut_list_fits_and_is_the_beginning(rows: list[int], most: int) -> None:
    items = [PublishedSnapshot(time="t", rows=number) for number in rows]
    kept = fit_items(items, most)
    assert list(kept) == items[: len(kept)]
    assert sum(len(item.dump_json()) + 1 for item in kept) <= most
    assert fit_items(kept, most) == kept


def test_cut_texts_are_cut_each_and_together() -> None:
    assert fit_texts(["a" * 30, "b" * 30, "c"], most=29, most_each=12) == ("aaaaaaa…", "bbbbbbb…")
