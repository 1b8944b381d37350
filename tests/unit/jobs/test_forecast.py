"""A plan names the same deletions by retention as a run makes in a folder."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.declared.declarations import files, output, parsed
from support.runner.quick import examples
from support.storage.folders import a_folder, a_run, day, now, published

from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos
from snaploom.output.state import EMPTY
from snaploom.plan.bundle import Bundle
from snaploom.plan.bundles import bundle_for
from snaploom.plan.explain import plan_json, plan_text
from snaploom.plan.intervals import SourceSnapshots
from snaploom.plan.plan import PublishedState, followed, plan_offline, plan_run, publishing_times
from snaploom.plan.retention import HeldSnapshot
from snaploom.plan.steps import Action
from snaploom.run.runevents import Estimate, estimate_of
from snaploom.run.weaving.history import delete_old_snapshots
from snaploom.run.weaving.preflight import published_state

DAY = 86_400 * 10**9
LAST = 20
"""The day that is the present of the generated histories."""


def bundle(rules: dict[str, Any], mode: str = "OLDEST_FIRST") -> Bundle:
    single = {"dataModel.otherDataSources": [], "dataModel.dataRelationships": []}
    folder = {
        "outputFolder.snapshotAutoDelete": rules,
        "outputFolder.snapshotCatchupMode": mode,
    }
    declared = parsed([files("customer"), output(**single, **folder)])
    return bundle_for("OutputDataset", "wide", declared)


ages = st.integers(1, 15).map(lambda days: {"day": days})
tiers = st.lists(
    st.builds(lambda age, length: {"olderThan": age, "keepOneEvery": length}, ages, ages),
    max_size=2,
)
rules = st.fixed_dictionaries(
    {},
    optional={
        "maxSnapshotAge": ages,
        "maxOldSnapshots": st.integers(0, 6),
        "tiers": tiers,
    },
)
days = st.sets(st.integers(0, LAST), max_size=8)


TIERS = {"maxOldSnapshots": 2, "tiers": [{"olderThan": {"day": 1}, "keepOneEvery": {"day": 5}}]}


@settings(max_examples=examples(150), deadline=None)
@given(rules, days, days, days, st.sampled_from(["OLDEST_FIRST", "NEWEST_FIRST"]))
@example(TIERS, {0, 1}, {20, 18}, {18}, "NEWEST_FIRST")
def test_the_forecast_is_what_a_run_deletes(rules, held, offered, stopped, mode):
    declared, present = bundle(rules, mode), EpochNanos(day(LAST))
    folder = a_folder(open_store("memory:", create=True))
    for number in sorted(held):
        published(folder, number)
    state = published_state(folder.store, folder.log.read())
    listed = {"customer": SourceSnapshots.of(map(day, held | offered))}
    plan = plan_run(plan_offline(declared), listed, state, present)
    due = publishing_times(plan.snapshots or ())
    snapshots = (
        replace(one, action=Action.SKIP) if (one.time - day(0)) // DAY in stopped else one
        for one in plan.snapshots or ()
    )
    plan = followed(plan, tuple(snapshots), state, present)
    deleted: list[int] = []
    for place, time in enumerate(due):
        if time not in publishing_times(plan.snapshots or ()):
            continue  # its schemas stop it when the run reaches it
        published(folder, (time - day(0)) // DAY)
        coming = due[place + 1 :]
        deleted += delete_old_snapshots(folder, a_run(), declared.output, present, coming)
    assert [removal.time for removal in plan.removing] == deleted


def test_with_nothing_due_nothing_is_deleted() -> None:
    state = PublishedState(tuple(HeldSnapshot(day(n), now()) for n in range(3)))
    listed = {"customer": SourceSnapshots.of(map(day, range(3)))}
    declared = bundle({"maxOldSnapshots": 0})
    assert plan_run(plan_offline(declared), listed, state, now()).removing == ()


def test_a_plan_shows_what_is_deleted_and_by_which_rule() -> None:
    state = PublishedState(tuple(HeldSnapshot(day(n), now()) for n in range(8)))
    listed = {"customer": SourceSnapshots.of(map(day, range(9)))}
    plan = plan_run(plan_offline(bundle({"maxOldSnapshots": 1})), listed, state, now())
    line = next(line for line in plan_text(plan).splitlines() if line.startswith("DELETE"))
    assert line.startswith("DELETE  7 snapshots by maxOldSnapshots: 2020-01-01T00:00:00Z, ")
    assert line.endswith(" and 2 more")
    deletes = plan_json(plan)["deletes"]
    assert deletes[0] == {"time": "2020-01-01T00:00:00Z", "rule": "maxOldSnapshots"}
    assert len(deletes) == 7


def test_candidates_that_are_skipped_alike_have_one_line() -> None:
    listed = {"customer": SourceSnapshots.of(map(day, range(40)))}
    plan = plan_run(plan_offline(bundle({})), listed, PublishedState(), now(), limit=1)
    lines = plan_text(plan).splitlines()
    assert sum(line.startswith(("PUBLISH", "SKIP")) for line in lines) == 2
    assert lines[-1].startswith("     38 more, 2020-01-03T00:00:00Z to 2020-02-09T00:00:00Z  LIMIT")


def test_what_was_deleted_by_its_publication_s_age_is_not_planned_again() -> None:
    """Published anew it would be young, and deleted again when it is not, for ever."""
    rules = {"maxSnapshotCreationAge": {"day": 1}}
    single = {"dataModel.otherDataSources": [], "dataModel.dataRelationships": []}
    declared = output(**single, **{"outputFolder.snapshotAutoDelete": rules})
    bundle = bundle_for("OutputDataset", "wide", parsed([files("customer"), declared]))
    folder = a_folder(open_store("memory:", create=True))
    for number in (0, 1):
        published(folder, number)
    assert delete_old_snapshots(folder, a_run(), bundle.output, now()) == (day(0),)
    state = published_state(folder.store, folder.log.read())
    listed = {"customer": SourceSnapshots.of([day(0), day(1)])}
    assert plan_run(plan_offline(bundle), listed, state, now()).snapshots == ()
    unheard_of = plan_run(plan_offline(bundle), listed, PublishedState(), now()).snapshots or ()
    assert [one.time for one in unheard_of] == [day(0), day(1)]


def test_rows_and_bytes_are_those_of_the_mean_and_time_is_that_between_two(tmp_path: Path) -> None:
    folder = a_folder(open_store(str(tmp_path), create=True))
    run = a_run()
    for number, count in enumerate((1, 3)):
        published(folder, number, run, files=count)
    state = folder.log.read()
    first, second = state.snapshots
    found = estimate_of(state, 10)
    assert (found.snapshots, found.rows) == (10, 200)
    sizes = [sum(file.bytes for file in record.files) for record in (first, second)]
    assert found.bytes == round(10 * sum(sizes) / 2)
    assert found.seconds == 10 * (second.created_at - first.created_at) / 1e9
    assert "10 snapshots due; about 200 rows" in str(found)


def test_publications_of_different_runs_give_no_time(tmp_path: Path) -> None:
    folder = a_folder(open_store(str(tmp_path), create=True))
    for number in (0, 1):
        published(folder, number)
    assert estimate_of(folder.log.read(), 3).seconds is None


def test_nothing_published_gives_no_estimate() -> None:
    assert estimate_of(EMPTY, 1) == Estimate(1)
    assert "nothing published yet" in str(Estimate(1))
