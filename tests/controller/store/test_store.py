"""The store: what is kept, and which resources are queued again."""

from typing import Any

import pytest
from support.declared.declarations import document, files, model, output, simple, spoilt
from support.operator.reviews import (
    NAMESPACE,
    config_map,
    current_run,
    driver_pod,
    key,
    newer,
    report,
    stored,
)

from snaploom.models.run import CurrentRun, Submitter
from snaploom_operator.decision import Unparsable
from snaploom_operator.objects import Ref
from snaploom_operator.queues import RunQueue
from snaploom_operator.settings import Limits
from snaploom_operator.store.store import Store

CUSTOMER, ADDRESS, RELATIONSHIP, OUTPUT = (stored(raw) for raw in model())
INDEX = document(
    "SkippingIndex",
    "by-day",
    {
        "target": {"outputDataset": "wide"},
        "indexes": [{"type": "MIN_MAX", "column": "day"}],
        "store": {"parquet": {"location": "/indexes/"}},
    },
)


def filled(*objects: Any) -> Store:
    store = Store()
    store.is_synced = True
    for each in objects or (CUSTOMER, ADDRESS, RELATIONSHIP, OUTPUT):
        store.put(each)
    return store


def changed(raw: Any, path: str, value: Any) -> Any:
    return newer(spoilt(raw, path, value), generation=raw["metadata"]["generation"] + 1)


def test_what_is_put_is_there_without_managed_fields() -> None:
    content = filled().get(key(OUTPUT))
    assert not isinstance(content, Unparsable)
    assert content.metadata.uid == OUTPUT["metadata"]["uid"]
    assert content.metadata.managed_fields == ()


def test_a_known_state_queues_nothing() -> None:
    store = filled()
    assert store.put(OUTPUT) == frozenset()
    assert store.put(newer(OUTPUT, resourceVersion="1")) == frozenset()


def test_a_newer_state_with_the_same_spec_queues_itself() -> None:
    assert filled().put(newer(CUSTOMER)) == {key(CUSTOMER)}


def test_a_changed_source_queues_all_that_depends_on_it() -> None:
    index = stored(INDEX)
    store = filled(CUSTOMER, ADDRESS, RELATIONSHIP, OUTPUT, index)
    woken = store.put(changed(CUSTOMER, "spec.hdfsLike.format", "orc"))
    assert woken == {key(each) for each in (CUSTOMER, RELATIONSHIP, OUTPUT, index)}


def test_a_resource_that_arrives_last_queues_those_that_wait_for_it() -> None:
    store = filled(OUTPUT, RELATIONSHIP)
    assert store.put(CUSTOMER) == {key(CUSTOMER), key(RELATIONSHIP), key(OUTPUT)}


def test_referrers_are_known_of_what_is_missing() -> None:
    assert filled(OUTPUT).referrers(key(CUSTOMER)) == {key(OUTPUT)}


def test_change_of_a_user_queues_what_it_refers_to() -> None:
    store = filled(CUSTOMER, ADDRESS, RELATIONSHIP)
    assert store.put(OUTPUT) == {key(each) for each in (CUSTOMER, ADDRESS, RELATIONSHIP, OUTPUT)}
    woken = {key(each) for each in (CUSTOMER, ADDRESS, RELATIONSHIP, OUTPUT)}
    assert store.remove(key(OUTPUT)) == woken


def test_another_spec_with_the_same_references_queues_none_of_them() -> None:
    store = filled()
    deeper = changed(OUTPUT, "spec.dataModel.maxDepth", 9)
    assert key(CUSTOMER) not in store.put(deeper)
    other = changed(newer(deeper), "spec.dataModel.rootDataSource.dataSource", "address")
    assert key(CUSTOMER) in store.put(other)


def test_a_removed_object_is_gone_and_queues_those_that_need_it_and_its_last_pass() -> None:
    store = filled()
    assert store.remove(key(CUSTOMER)) == {key(CUSTOMER), key(RELATIONSHIP), key(OUTPUT)}
    assert store.get(key(CUSTOMER)) is None
    assert store.refs() == tuple(key(each) for each in (ADDRESS, RELATIONSHIP, OUTPUT))


def test_the_end_of_a_former_object_does_not_remove_the_one_that_came_after_it() -> None:
    store = filled()
    store.put(newer(CUSTOMER, uid="another"))
    assert store.remove(key(CUSTOMER), uid=CUSTOMER["metadata"]["uid"]) == frozenset()
    assert store.get(key(CUSTOMER)) is not None


def test_the_closure_holds_what_is_referred_to_and_no_more() -> None:
    unused = stored(files("unused"))
    store = filled(CUSTOMER, ADDRESS, RELATIONSHIP, OUTPUT, unused)
    found = {entry.ref for entry in store.closure(key(OUTPUT))}
    assert found == {key(each) for each in (CUSTOMER, ADDRESS, RELATIONSHIP, OUTPUT)}


def test_names_of_another_namespace_are_not_meant() -> None:
    elsewhere = stored(files("customer"), namespace="elsewhere")
    store = filled(OUTPUT)
    assert store.put(elsewhere) == {key(elsewhere, "elsewhere")}


def test_what_cannot_be_parsed_is_kept_with_its_findings() -> None:
    store = filled(changed(CUSTOMER, "spec.hdfsLike.formatt", "orc"))
    content = store.get(key(CUSTOMER))
    assert isinstance(content, Unparsable)
    assert [finding.path for finding in content.findings] == ["spec.hdfsLike.formatt"]
    assert content.generation == 2


def test_a_status_that_cannot_be_parsed_is_read_as_none() -> None:
    store = filled(newer(spoilt(OUTPUT, "status", {"inventedLater": 1})))
    content = store.get(key(OUTPUT))
    assert content is not None
    assert not isinstance(content, Unparsable)


def test_another_status_of_the_same_spec_shares_the_spec_in_memory() -> None:
    store = filled()
    before: Any = store.get(key(OUTPUT))
    store.put(newer(spoilt(OUTPUT, "status", {"snapshotCount": 3}), annotations={"a": "b"}))
    after: Any = store.get(key(OUTPUT))
    assert after.spec is before.spec
    assert (after.status.snapshot_count, after.metadata.annotations) == (3, {"a": "b"})


@pytest.mark.parametrize("metadata", [{"generation": 2}, {"uid": "another"}])
def test_another_generation_or_object_is_parsed_anew(metadata: dict[str, Any]) -> None:
    store = filled()
    other = newer(spoilt(OUTPUT, "spec.outputFolder.folderUri", "/elsewhere/"), **metadata)
    store.put(other)
    content: Any = store.get(key(OUTPUT))
    assert content.spec.output_folder.folder_uri == "/elsewhere/"


def test_a_newer_status_that_cannot_be_parsed_is_read_as_none() -> None:
    store = filled(newer(spoilt(OUTPUT, "status", {"snapshotCount": 3})))
    store.put(newer(spoilt(OUTPUT, "status", {"inventedLater": 1})))
    content: Any = store.get(key(OUTPUT))
    assert content.status is None


def test_a_status_that_is_removed_is_gone() -> None:
    store = filled(newer(spoilt(OUTPUT, "status", {"snapshotCount": 3})))
    store.put(newer(OUTPUT))
    content: Any = store.get(key(OUTPUT))
    assert content.status is None


def test_declarations_of_a_namespace_count_as_changed_with_their_spec_only() -> None:
    store = filled()
    before = store.declared_changes[OUTPUT["metadata"]["namespace"]]
    store.put(newer(spoilt(OUTPUT, "status", {"snapshotCount": 3})))
    assert store.declared_changes[OUTPUT["metadata"]["namespace"]] == before
    store.put(changed(OUTPUT, "spec.outputFolder.folderUri", "/elsewhere/"))
    assert store.declared_changes[OUTPUT["metadata"]["namespace"]] == before + 1
    store.remove(key(OUTPUT))
    assert store.declared_changes[OUTPUT["metadata"]["namespace"]] == before + 2


@pytest.mark.parametrize("is_table", [False, True], ids=["folder", "table"])
def test_a_new_publication_queues_indexes_and_readers_of_the_folder(is_table: bool) -> None:
    index, wide = stored(INDEX), OUTPUT
    virtual = stored(simple("virtual", "SELECT * FROM c", source="published"))
    published = stored(files("published", sourceUriGlobs=["/out/wide/data/*/*.parquet"]))
    if is_table:
        named = {"format": "iceberg", "table": {"catalog": "lake", "name": "shop.wide"}}
        published["spec"]["hdfsLike"] = {**named, "snapshot": {"fromReadTime": {}}}
        wide = spoilt(OUTPUT, "spec.outputFolder.table", named["table"])
        wide = spoilt(wide, "spec.outputFolder.dataFormat", "ICEBERG")
    reader = stored(
        output("reader", **{"dataModel.rootDataSource.dataSource": "virtual"}), generation=1
    )
    store = filled(CUSTOMER, ADDRESS, RELATIONSHIP, wide, index, virtual, published, reader)
    pointer = {"uri": "/out/wide/", "sequence": 4}
    woken = store.put(newer(spoilt(wide, "status", {"manifest": pointer})))
    assert woken == {key(OUTPUT), key(index), key(reader)}


def test_another_status_queues_nothing_else() -> None:
    store = filled(CUSTOMER, ADDRESS, RELATIONSHIP, OUTPUT, stored(INDEX))
    assert store.put(newer(spoilt(OUTPUT, "status", {"snapshotCount": 3}))) == {key(OUTPUT)}


def test_outputs_around_and_below_a_folder_are_found() -> None:
    inner = stored(output("inner", **{"outputFolder.folderUri": "/out/wide/inner/"}))
    beside = stored(output("beside", **{"outputFolder.folderUri": "/out/wider/"}))
    store = filled(OUTPUT, beside)
    assert store.put(inner) >= {key(inner), key(OUTPUT)}
    content = store.get(key(inner))
    assert {each.name for each in store.overlapping(content)} == {"inner", "wide"}


@pytest.mark.parametrize(
    "child",
    [
        config_map(OUTPUT, "ods-wide-1", "bundle"),
        report(OUTPUT, "ods-wide-1"),
        driver_pod(OUTPUT, "ods-wide-1", phase="Pending"),
    ],
    ids=lambda child: str(child["metadata"]["name"]),
)
def test_a_created_or_deleted_child_queues_its_owner(child: Any) -> None:
    store = filled()
    ref = Ref(child["kind"], NAMESPACE, child["metadata"]["name"])
    assert store.put(child) == {key(OUTPUT)}
    assert [each.ref for each in store.children(OUTPUT["metadata"]["uid"])] == [ref]
    assert store.remove(ref) == {key(OUTPUT)}
    assert store.children(OUTPUT["metadata"]["uid"]) == ()


def test_a_child_in_another_namespace_queues_nothing() -> None:
    child = config_map(OUTPUT, "ods-wide-1", "bundle")
    child["metadata"]["namespace"] = "elsewhere"
    assert filled().put(child) == frozenset()


def test_what_a_report_saw_of_a_source_queues_it_and_outlives_the_report() -> None:
    store = filled()
    seen = [{"source": "customer", "latestSnapshot": "2026-01-01T00:00:00Z", "snapshots": 3}]
    reported = report(OUTPUT, "ods-wide-1", seen=seen)
    assert store.put(reported) == {key(OUTPUT), key(CUSTOMER)}
    store.remove(Ref("ConfigMap", NAMESPACE, reported["metadata"]["name"]))
    look = store.last_seen(key(CUSTOMER))
    assert look.snapshots == 3


def test_a_run_that_read_no_row_leaves_the_schema_known() -> None:
    store = filled()
    for run, at, schema in (
        ("ods-wide-1", "2026-01-01", "abc"),
        ("ods-wide-2", "2026-01-02", None),
    ):
        seen = {"source": "customer", "snapshots": 3} | (
            {"schemaFingerprint": schema} if schema else {}
        )
        store.put(
            report(
                OUTPUT, run, seen=[seen], startedAt=f"{at}T00:00:00Z", finishedAt=f"{at}T01:00:00Z"
            )
        )
    look = store.last_seen(key(CUSTOMER))
    assert (look.run, look.schema_fingerprint) == ("ods-wide-2", "abc")


def test_a_run_that_ends_starts_the_next_in_the_queue() -> None:
    store = Store(limits=Limits(runs=1))
    first = stored(output("first"), currentRun=current_run("a", "Running"))
    second = stored(output("second"), currentRun=current_run("b", "Queued"))
    for each in (first, second):
        store.put(each)
    assert not store.queue.place_of(key(second)).has_slot
    assert store.put(newer(spoilt(first, "status", {}))) == {key(first), key(second)}
    assert store.queue.place_of(key(second)).has_slot


def test_a_namespace_that_is_being_deleted_queues_its_resources() -> None:
    store = filled(CUSTOMER, OUTPUT)
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "resourceVersion": "5"},
        "status": {"phase": "Terminating"},
    }
    assert store.put(namespace) == {key(CUSTOMER), key(OUTPUT)}
    assert NAMESPACE in store.terminating


def test_submitters_that_come_or_go_wake_what_can_run() -> None:
    store = filled()
    assert store.set_available(frozenset({Submitter.LOCAL})) == {key(OUTPUT)}
    assert store.set_available(frozenset({Submitter.LOCAL})) == frozenset()


def test_run_that_waits_since_nobody_knows_when_is_taken_in_and_goes_first() -> None:
    queue = RunQueue(Limits(runs=1))
    run = {"phase": "Queued", "since": "2026-01-01T00:00:00Z", "startedAt": "2026-01-01T00:00:00Z"}
    edited = run | {"startedAt": "2026-13-45T99:99:99Z"}
    for name, fields in (("usual", run), ("edited", edited)):
        ref = Ref("OutputDataset", "default", name)
        queue.put(ref, CurrentRun.parse({"name": name, "id": name, **fields}))
    assert {ref.name for ref in queue.next() if queue.place_of(ref).has_slot} == {"edited"}


def test_a_full_namespace_does_not_hold_up_the_others() -> None:
    queue = RunQueue(Limits(runs=3, runs_per_namespace=1))
    crowd = [Ref("OutputDataset", "crowded", str(number)) for number in range(3)]
    other = Ref("OutputDataset", "quiet", "late")
    for minute, ref in enumerate([*crowd, other]):
        at = f"2026-01-01T00:0{minute}:00Z"
        run = current_run(f"run-{minute}", "Queued") | {"since": at, "startedAt": at}
        queue.put(ref, CurrentRun.parse(run))
    assert [queue.place_of(ref).has_slot for ref in (*crowd, other)] == [True, False, False, True]


def test_runs_that_are_about_to_start_take_the_slots_before_their_statuses_are_written() -> None:
    store = Store(limits=Limits(runs=1))
    first, second = stored(output("first")), stored(output("second"))
    for each in (first, second):
        store.put(each)
    assert store.queue.place_of(key(first)).has_slot
    assert store.queue.place_of(key(second)).has_slot
    store.claim(key(first), CurrentRun.parse(current_run("a", "Submitting")))
    assert not store.queue.place_of(key(second)).has_slot
    assert store.queue.place_of(key(first)).has_slot  # its write may fail, and be tried again
    store.claim(key(first), None)
    assert store.queue.place_of(key(second)).has_slot


def test_new_run_has_no_slot_while_another_waits_for_the_only_one() -> None:
    store = Store(limits=Limits(runs=1))
    waiting = stored(output("waiting"), currentRun=current_run("a", "Queued"))
    for each in (waiting, stored(output("new"))):
        store.put(each)
    assert store.queue.place_of(key(waiting)).has_slot
    assert not store.queue.place_of(Ref("OutputDataset", NAMESPACE, "new")).has_slot


def test_slot_that_was_given_back_wakes_what_waits_for_it() -> None:
    store = Store(limits=Limits(runs=1))
    new = stored(output("new"))
    waiting = stored(output("waiting"), currentRun=current_run("a", "Queued"))
    store.put(new)
    store.claim(key(new), CurrentRun.parse(current_run("b", "Submitting")))
    store.put(waiting)
    assert not store.queue.place_of(key(waiting)).has_slot
    assert store.claim(key(new), None) == {key(waiting)}
    assert store.queue.place_of(key(waiting)).has_slot
