"""A status is written where it differs, over the object that it is about, and never too large."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.operator.clusters import TRANSFORMERS, a_transformer
from support.operator.fakecluster import merged
from support.operator.faultycluster import FaultyCluster

from snaploom.models.common import Condition, EpochNanos, ResourceStatus
from snaploom.models.datasource import UsedBy
from snaploom.models.fieldtransformer import FieldTransformer, FieldTransformerStatus
from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.run import LastRun
from snaploom_operator.apply.actions import cut_to_size, write_status
from snaploom_operator.cluster.port import difference
from snaploom_operator.decision import Unparsable
from snaploom_operator.errors import ObjectChanged, ObjectMissing
from snaploom_operator.objects import Ref

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
