"""Actions change the cluster once, however often they are performed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.operator.clusters import TRANSFORMERS, a_config_map, a_transformer, until_gone
from support.operator.fakecluster import FakeCluster, merged
from support.operator.faultycluster import LOST_ANSWER, LOST_REQUEST, FaultyCluster, at

from snaploom.models.common import Condition, EpochNanos, ResourceStatus
from snaploom.models.datasource import UsedBy
from snaploom.models.fieldtransformer import FieldTransformer, FieldTransformerStatus
from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.run import LastRun
from snaploom_operator.apply.executor import apply, cut_to_size, write_status
from snaploom_operator.cluster.port import CONFIG_MAPS, difference
from snaploom_operator.decision import (
    AddFinalizer,
    Create,
    Delete,
    Ensure,
    RemoveFinalizer,
    Unparsable,
)
from snaploom_operator.errors import (
    ApiUnavailable,
    NameTaken,
    ObjectChanged,
    ObjectExists,
    ObjectMissing,
)
from snaploom_operator.objects import FINALIZER, LABEL_OWNER, LABEL_RUN, Metadata, Ref

OTHERS = "example.org/others"


@pytest.fixture
async def owner(cluster, own_namespace):
    return await an_owner(cluster, own_namespace)


async def an_owner(cluster, own_namespace, **metadata):
    stored = await cluster.create(TRANSFORMERS, own_namespace, a_transformer(**metadata))
    return FieldTransformer.parse(stored)


def a_child(owner, data=None, run="ods-wide-1", **metadata):
    labels = {LABEL_OWNER: owner.metadata.uid, LABEL_RUN: run}
    return a_config_map("child", data or {"a": "1"}, labels=labels, **metadata)


async def test_created_object_is_returned_as_stored(cluster, own_namespace, owner):
    created = await apply(Create(CONFIG_MAPS, a_child(owner)), owner, cluster)
    assert created == await cluster.get(CONFIG_MAPS, own_namespace, "child")


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param({}, id="none"),
        pytest.param({LABEL_OWNER: "somebody"}, id="owner"),
        pytest.param({LABEL_RUN: "ods-wide-2"}, id="run"),
    ],
)
@pytest.mark.parametrize("action", [Ensure, lambda manifest: Create(CONFIG_MAPS, manifest)])
async def test_object_of_another_owner_is_reported_and_kept(
    cluster, own_namespace, owner, labels, action
):
    known = {LABEL_OWNER: owner.metadata.uid, LABEL_RUN: "ods-wide-1"} | labels if labels else {}
    foreign = await cluster.create(CONFIG_MAPS, own_namespace, a_config_map("child", labels=known))
    with pytest.raises(NameTaken) as failure:
        await apply(action(a_child(owner)), owner, cluster)
    assert failure.value.resource == "ConfigMap/child"
    assert owner.metadata.uid in failure.value.expected
    assert all(value in failure.value.found for value in labels.values())
    assert await cluster.get(CONFIG_MAPS, own_namespace, "child") == foreign


async def test_object_that_is_being_deleted_is_not_adopted(cluster, own_namespace, owner):
    going = await cluster.create(CONFIG_MAPS, own_namespace, a_child(owner, finalizers=[OTHERS]))
    await cluster.delete(CONFIG_MAPS, own_namespace, "child", uid=Metadata.of(going).uid)
    with pytest.raises(ObjectExists, match="is being deleted"):
        await apply(Create(CONFIG_MAPS, a_child(owner)), owner, cluster)
    await cluster.patch(CONFIG_MAPS, own_namespace, "child", {"metadata": {"finalizers": None}})
    created = await apply(Create(CONFIG_MAPS, a_child(owner)), owner, cluster)
    assert Metadata.of(created).uid != Metadata.of(going).uid


async def test_ensured_config_map_has_exactly_the_wanted_data(cluster, owner):
    created = await apply(Ensure(a_child(owner, {"a": "1", "b": "2"})), owner, cluster)
    changed = await apply(Ensure(a_child(owner, {"b": "3", "c": "4"})), owner, cluster)
    assert Metadata.of(changed).uid == Metadata.of(created).uid
    assert changed["data"] == {"b": "3", "c": "4"}


async def test_ensuring_what_is_there_writes_nothing(cluster, owner):
    watched = FaultyCluster(cluster)
    first = await apply(Ensure(a_child(owner)), owner, watched)
    assert await apply(Ensure(a_child(owner)), owner, watched) == first
    assert [call.verb for call in watched.writes] == ["create"]


async def test_deleted_object_is_gone_and_others_stay(cluster, own_namespace, owner):
    child = Metadata.of(await apply(Create(CONFIG_MAPS, a_child(owner)), owner, cluster))
    await apply(Delete(CONFIG_MAPS, own_namespace, "child", "another"), owner, cluster)
    assert Metadata.of(await cluster.get(CONFIG_MAPS, own_namespace, "child")) == child
    for _ in range(2):
        await apply(Delete(CONFIG_MAPS, own_namespace, "child", child.uid), owner, cluster)
    await until_gone(cluster, CONFIG_MAPS, own_namespace, "child")


async def test_finalizers_of_others_stay(cluster, own_namespace):
    owner = await an_owner(cluster, own_namespace, finalizers=[OTHERS])
    held = await apply(AddFinalizer(), owner, cluster)
    assert Metadata.of(held).finalizers == (OTHERS, FINALIZER)
    released = await apply(RemoveFinalizer(), FieldTransformer.parse(held), cluster)
    assert Metadata.of(released).finalizers == (OTHERS,)
    assert Metadata.of(released).generation == 1


async def test_finalizer_that_is_there_is_not_added_again(cluster, own_namespace):
    owner = await an_owner(cluster, own_namespace, finalizers=[FINALIZER])
    watched = FaultyCluster(cluster)
    assert await apply(AddFinalizer(), owner, watched) is None
    assert watched.calls == []


async def test_finalizers_of_an_older_version_are_not_written(cluster, own_namespace, owner):
    await cluster.patch(
        TRANSFORMERS, own_namespace, owner.name, {"metadata": {"finalizers": [OTHERS]}}
    )
    with pytest.raises(ObjectChanged):
        await apply(AddFinalizer(), owner, cluster)


async def test_released_resource_is_deleted_and_a_second_release_does_nothing(
    cluster, own_namespace
):
    owner = await an_owner(cluster, own_namespace, finalizers=[FINALIZER])
    await cluster.delete(TRANSFORMERS, own_namespace, owner.name, uid=owner.metadata.uid)
    owner = FieldTransformer.parse(await cluster.get(TRANSFORMERS, own_namespace, owner.name))
    await apply(RemoveFinalizer(), owner, cluster)
    with pytest.raises(ObjectMissing):
        await cluster.get(TRANSFORMERS, own_namespace, owner.name)
    assert await apply(RemoveFinalizer(), owner, cluster) is None


async def test_resource_that_cannot_be_parsed_is_released_too(cluster, own_namespace):
    owner = await an_owner(cluster, own_namespace, finalizers=[OTHERS, FINALIZER])
    ref = Ref(owner.kind, own_namespace, owner.name)
    released = await apply(RemoveFinalizer(), an_unparsable(ref, owner.metadata.uid), cluster)
    assert Metadata.of(released).finalizers == (OTHERS,)
    assert await apply(RemoveFinalizer(), an_unparsable(ref, "another"), cluster) is None


def an_unparsable(ref, uid):
    return Unparsable(EpochNanos(0), ref, uid, 1, (), None)


@pytest.mark.parametrize("fault", [LOST_REQUEST, LOST_ANSWER])
@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("action", [Ensure, lambda manifest: Create(CONFIG_MAPS, manifest)])
async def test_action_that_lost_an_answer_is_done_once(fault, number, action):
    inner = FakeCluster()
    owner = await an_owner(inner, "default")
    await inner.create(CONFIG_MAPS, "default", a_child(owner, {"old": "0"}))
    bad = FaultyCluster(inner, at(number, fault))
    for _ in range(2):
        try:
            stored = await apply(action(a_child(owner)), owner, bad)
        except ApiUnavailable:
            continue
    assert inner.all(CONFIG_MAPS) == [stored]


READY = Condition(
    type="Ready", status="True", last_transition_time="2020-01-01T00:00:00Z", reason="Valid"
)
FULL = FieldTransformerStatus(
    observed_generation=1,
    conditions=(READY,),
    used_by=UsedBy(count=1, names=("DataSource/a",)),
)
JSON_OBJECTS = st.dictionaries(
    st.sampled_from("abc"),
    st.recursive(
        st.booleans() | st.integers(0, 2) | st.sampled_from(["", "x", "y" * 300]),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner),
        max_leaves=8,
    ),
)


@pytest.fixture
async def resource(cluster, own_namespace):
    return FieldTransformer.parse(
        await cluster.create(TRANSFORMERS, own_namespace, a_transformer())
    )


async def write(cluster, resource, after):
    stored = await write_status(resource, after, cluster)
    return None if stored is None else FieldTransformer.parse(stored)


async def test_written_status_is_what_is_stored(cluster, own_namespace, resource):
    written = await write(cluster, resource, FULL)
    stored = await cluster.get(TRANSFORMERS, own_namespace, resource.name)
    assert written.status == FULL
    assert FieldTransformer.parse(stored) == written
    assert stored["status"] == FULL.dump()


async def test_status_that_is_the_same_is_not_written(cluster, resource):
    written = await write(cluster, resource, FULL)
    watched = FaultyCluster(cluster)
    assert await write(watched, written, FULL) is None
    assert watched.calls == []


async def test_what_a_status_no_longer_has_is_removed(cluster, resource):
    written = await write(cluster, resource, FULL)
    less = FieldTransformerStatus(observed_generation=2)
    assert (await write(cluster, written, less)).status == less


async def test_status_of_a_changed_resource_is_not_written(cluster, own_namespace, resource):
    await cluster.patch(
        TRANSFORMERS, own_namespace, resource.name, {"metadata": {"labels": {"a": "b"}}}
    )
    with pytest.raises(ObjectChanged):
        await write(cluster, resource, FULL)


async def test_status_of_a_resource_that_is_gone_is_not_written(cluster, own_namespace, resource):
    await cluster.delete(TRANSFORMERS, own_namespace, resource.name, uid=resource.metadata.uid)
    with pytest.raises(ObjectMissing):
        await write(cluster, resource, FULL)


def unparsable(resource, status=None, uid=None):
    metadata = resource.metadata
    ref = Ref(resource.kind, metadata.namespace, metadata.name)
    return Unparsable(EpochNanos(0), ref, uid or metadata.uid, 1, (), status)


async def test_status_that_cannot_be_parsed_is_replaced(cluster, own_namespace, resource):
    await write(cluster, resource, FULL)
    replacement = ResourceStatus(observed_generation=3)
    stored = await write_status(unparsable(resource), replacement, cluster)
    assert stored["status"] == replacement.dump()
    assert await write_status(unparsable(resource, replacement), replacement, cluster) is None
    with pytest.raises(ObjectChanged):
        await write_status(unparsable(resource, uid="another"), replacement, cluster)


@pytest.mark.parametrize("generation", [1, 3])
async def test_status_that_was_read_as_missing_is_replaced_as_a_whole(
    cluster, own_namespace, resource, generation
):
    patch = {"status": FULL.dump()}
    stored = await cluster.patch(
        TRANSFORMERS, own_namespace, resource.name, patch, subresource="status"
    )
    replacement = FieldTransformerStatus(observed_generation=generation)
    written = await write(cluster, without_status(FieldTransformer.parse(stored)), replacement)
    assert written.status == replacement
    assert await write(cluster, without_status(written), replacement) is None


def without_status(resource):
    return resource.model_copy(update={"status": None})


async def test_status_that_is_too_large_is_cut_and_then_settled(cluster, resource):
    large = tuple(
        READY.model_copy(update={"type": f"T{i}", "message": "ä" * 900}) for i in range(16)
    )
    after = FULL.model_copy(update={"conditions": large})
    written = await write(cluster, resource, after)
    assert len(written.status.dump_json().encode()) <= 32 * 1024
    assert [c.type for c in written.status.conditions] == [c.type for c in large]
    assert await write(cluster, written, after) is None


@given(JSON_OBJECTS, JSON_OBJECTS)
def test_difference_makes_one_object_of_the_other(before, after):
    patch = difference(before, after)
    assert merged(before, patch) == after
    assert bool(patch) == (json.dumps(before, sort_keys=True) != json.dumps(after, sort_keys=True))


@given(JSON_OBJECTS, st.integers(700, 2000))
def test_cut_status_fits_and_one_that_fits_is_not_cut(status, most):
    cut = cut_to_size(status, most)
    assert size_of(cut) <= most
    assert size_of(status) > most or cut == status
    assert cut_to_size(cut, most) == cut


def test_cut_status_keeps_the_beginnings_of_its_lists():
    names = tuple(f"2020-01-{day:02}T00:00:00Z {'x' * 900}" for day in range(1, 21))
    run = LastRun(
        id="ods-wide-1",
        phase="Failed",
        started_at="2020-01-01T00:00:00Z",
        skipped=names,
        failed=names,
    )
    whole = OutputDatasetStatus(conditions=(READY,), last_run=run)
    cut = OutputDatasetStatus.parse(cut_to_size(whole.dump()))
    assert cut.conditions == whole.conditions
    assert (cut.last_run.skipped, cut.last_run.failed) in [
        (names[:10], names),
        (names, names[:10]),
    ]


def size_of(status):
    return len(json.dumps(status, separators=(",", ":"), ensure_ascii=False).encode())
