"""What planning gets from a folder."""

from __future__ import annotations

from support.declared.declarations import files, output, parsed
from support.storage.folders import a_folder, a_run, day, now, published

from snaploom.files.stores import open_store
from snaploom.plan.bundles import bundle_for
from snaploom.plan.intervals import SourceSnapshots
from snaploom.plan.plan import PublishedState, plan_run
from snaploom.run.weaving.history import delete_old_snapshots
from snaploom.run.weaving.preflight import published_state


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
    assert plan_run(bundle, listed, state, now()).snapshots == ()
    unheard_of = plan_run(bundle, listed, PublishedState(), now()).snapshots or ()
    assert [one.time for one in unheard_of] == [day(0), day(1)]
