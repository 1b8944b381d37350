"""The port's promises, of the cluster in memory and of a real one alike."""

import pytest
from support.operator.clusters import (
    TRANSFORMERS,
    a_config_map,
    a_transformer,
    an_object,
    owned_by,
    until,
    until_gone,
)

from snaploom.models.kinds import KINDS
from snaploom_operator.cluster.port import (
    CONFIG_MAPS,
    NAMESPACES,
    PODS,
    VALIDATING_WEBHOOKS,
    ApiResource,
)
from snaploom_operator.errors import (
    NamespaceTerminating,
    ObjectChanged,
    ObjectExists,
    ObjectMissing,
    ObjectRefused,
    ResourceUnknown,
)
from snaploom_operator.objects import Metadata
from snaploom_operator.store.feed import outdated_kinds

UNKNOWN = (
    pytest.param(ApiResource("nobody.example.org", "v1", "things", "Thing"), id="group"),
    pytest.param(ApiResource("snaploom.io", "v1alpha1", "things", "Thing"), id="plural"),
    pytest.param(ApiResource("snaploom.io", "v9", "datasources", "DataSource"), id="version"),
    pytest.param(ApiResource("", "v1", "things", "Thing"), id="core"),
)


async def test_created_object_is_what_is_read(cluster, own_namespace):
    created = await cluster.create(CONFIG_MAPS, own_namespace, a_config_map("settings", {"a": "1"}))
    assert created == await cluster.get(CONFIG_MAPS, own_namespace, "settings")
    assert created["data"] == {"a": "1"}
    assert Metadata.of(created).namespace == own_namespace


async def test_served_kinds_are_described(cluster):
    served = await cluster.schemas()
    assert {kind.name for kind in KINDS} <= served.keys()
    assert outdated_kinds(served) == {}


async def test_managed_fields_are_not_shown(cluster, own_namespace):
    created = await cluster.create(CONFIG_MAPS, own_namespace, a_config_map("settings"))
    listed = (await cluster.list(CONFIG_MAPS, namespace=own_namespace, selector="!a")).items
    assert "managedFields" not in created["metadata"]
    assert all("managedFields" not in item["metadata"] for item in listed)


async def test_pages_are_the_list(cluster, own_namespace):
    for name in ("a", "b", "c"):
        await cluster.create(CONFIG_MAPS, own_namespace, a_config_map(name))
    listing = await cluster.list(CONFIG_MAPS, namespace=own_namespace)
    pages = [page async for page in cluster.pages(CONFIG_MAPS, namespace=own_namespace)]
    assert tuple(item for page in pages for item in page.items) == listing.items
    assert [page.is_first for page in pages] == [True] + [False] * (len(pages) - 1)


@pytest.mark.parametrize("resource", [CONFIG_MAPS, TRANSFORMERS])
async def test_listed_objects_have_their_kind(cluster, own_namespace, resource):
    make = a_config_map if resource == CONFIG_MAPS else a_transformer
    await cluster.create(resource, own_namespace, make("one"))
    (found,) = (
        item
        for item in (await cluster.list(resource, namespace=own_namespace)).items
        if Metadata.of(item).name == "one"
    )
    assert (found["apiVersion"], found["kind"]) == (resource.api_version, resource.kind)
    assert found == await cluster.get(resource, own_namespace, "one")


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("color=red", ["a"]),
        ("color!=red,size", ["b", "c"]),
        ("color in (red, blue)", ["a", "b"]),
        ("color notin (red),color", ["b"]),
        ("!color,size", ["c"]),
    ],
)
async def test_selector_chooses_by_labels(cluster, own_namespace, selector, names):
    await cluster.create(CONFIG_MAPS, own_namespace, a_config_map("a", labels={"color": "red"}))
    labels = {"color": "blue", "size": "1"}
    await cluster.create(CONFIG_MAPS, own_namespace, a_config_map("b", labels=labels))
    await cluster.create(CONFIG_MAPS, own_namespace, a_config_map("c", labels={"size": "2"}))
    found = (await cluster.list(CONFIG_MAPS, namespace=own_namespace, selector=selector)).items
    assert [Metadata.of(item).name for item in found] == names


async def test_list_of_all_namespaces_finds_the_object(cluster, own_namespace):
    created = await cluster.create(TRANSFORMERS, own_namespace, a_transformer())
    assert created in (await cluster.list(TRANSFORMERS)).items


async def test_list_of_an_absent_namespace_is_empty(cluster):
    assert (await cluster.list(CONFIG_MAPS, namespace="nowhere")).items == ()


@pytest.mark.parametrize("resource", UNKNOWN)
async def test_unknown_kind_and_absent_object_raise_different_errors(
    cluster, own_namespace, resource
):
    with pytest.raises(ResourceUnknown):
        await cluster.list(resource, namespace=own_namespace)
    with pytest.raises(ResourceUnknown):
        await cluster.get(resource, own_namespace, "one")
    with pytest.raises(ResourceUnknown):
        await cluster.create(resource, own_namespace, an_object(resource, "one"))
    with pytest.raises(ResourceUnknown):
        await cluster.patch(resource, own_namespace, "one", {"metadata": {"labels": {"a": "b"}}})


@pytest.mark.parametrize("resource", [CONFIG_MAPS, TRANSFORMERS])
async def test_absent_object_is_missing(cluster, own_namespace, resource):
    with pytest.raises(ObjectMissing, match="absent"):
        await cluster.get(resource, own_namespace, "absent")
    with pytest.raises(ObjectMissing):
        await cluster.patch(resource, own_namespace, "absent", {"metadata": {"labels": {"a": "b"}}})
    await cluster.delete(
        resource, own_namespace, "absent", uid="2a4f1a61-0000-0000-0000-000000000000"
    )


async def test_objects_without_namespace_have_an_empty_one(cluster, own_namespace):
    found = await cluster.get(NAMESPACES, "", own_namespace)
    assert Metadata.of(found).namespace == ""
    assert found in (await cluster.list(NAMESPACES)).items
    with pytest.raises(ObjectMissing):
        await cluster.get(VALIDATING_WEBHOOKS, "", "absent")


async def test_second_object_of_a_name_exists(cluster, own_namespace):
    await cluster.create(CONFIG_MAPS, own_namespace, a_config_map("settings"))
    with pytest.raises(ObjectExists, match="settings"):
        await cluster.create(CONFIG_MAPS, own_namespace, a_config_map("settings"))


@pytest.mark.parametrize(
    ("name", "data", "metadata"),
    [
        pytest.param("Capitals", {}, {}, id="name"),
        pytest.param("a", {}, {"labels": {"a": "x" * 64}}, id="label"),
        pytest.param("a", {"a": "x" * (1024 * 1024 + 1)}, {}, id="size"),
        pytest.param("a", {}, {"annotations": {"a": "x" * 262_144}}, id="annotations"),
        pytest.param("a", {"a": 1}, {}, id="type"),
    ],
)
async def test_wrong_object_is_refused(cluster, own_namespace, name, data, metadata):
    with pytest.raises(ObjectRefused):
        await cluster.create(CONFIG_MAPS, own_namespace, a_config_map(name, data, **metadata))


async def test_content_of_an_immutable_object_is_refused(cluster, own_namespace):
    await cluster.create(
        CONFIG_MAPS, own_namespace, a_config_map("fixed", {"a": "1"}) | {"immutable": True}
    )
    with pytest.raises(ObjectRefused, match="immutable"):
        await cluster.patch(CONFIG_MAPS, own_namespace, "fixed", {"data": {"a": "2"}})


async def test_create_in_an_absent_namespace_is_too_late(cluster):
    with pytest.raises(NamespaceTerminating, match="nowhere"):
        await cluster.create(CONFIG_MAPS, "nowhere", a_config_map("settings"))


async def test_create_in_a_terminating_namespace_is_too_late(cluster, own_namespace):
    held = a_config_map("held", finalizers=["example.org/held"])
    held = await cluster.create(CONFIG_MAPS, own_namespace, held)
    space = await cluster.get(NAMESPACES, "", own_namespace)
    await cluster.delete(NAMESPACES, "", own_namespace, uid=Metadata.of(space).uid)
    with pytest.raises(NamespaceTerminating):
        await cluster.create(CONFIG_MAPS, own_namespace, a_config_map("late"))
    await until_deleting(cluster, own_namespace, "held")
    await cluster.patch(CONFIG_MAPS, own_namespace, "held", {"metadata": {"finalizers": None}})
    await until_gone(cluster, NAMESPACES, "", own_namespace)


async def until_deleting(cluster, own_namespace, name):
    async def is_deleting():
        return Metadata.of(await cluster.get(CONFIG_MAPS, own_namespace, name)).is_deleting

    await until(is_deleting)


async def test_patch_changes_what_it_names(cluster, own_namespace):
    before = await cluster.create(
        CONFIG_MAPS, own_namespace, a_config_map("a", {"x": "1", "y": "2"})
    )
    after = await cluster.patch(CONFIG_MAPS, own_namespace, "a", {"data": {"x": None, "z": "3"}})
    assert after["data"] == {"y": "2", "z": "3"}
    assert Metadata.of(after).resource_version != Metadata.of(before).resource_version


async def test_patch_of_nothing_writes_nothing(cluster, own_namespace):
    before = await cluster.create(CONFIG_MAPS, own_namespace, a_config_map("a", {"x": "1"}))
    assert await cluster.patch(CONFIG_MAPS, own_namespace, "a", {"data": {"x": "1"}}) == before


@pytest.mark.parametrize("subresource", ["", "status"])
async def test_patch_of_an_older_version_is_a_conflict(cluster, own_namespace, subresource):
    before = await cluster.create(TRANSFORMERS, own_namespace, a_transformer())
    await cluster.patch(
        TRANSFORMERS, own_namespace, "rounding", {"metadata": {"labels": {"a": "b"}}}
    )
    version = Metadata.of(before).resource_version
    patch = {"metadata": {"resourceVersion": version}, "status": {"observedGeneration": 1}}
    with pytest.raises(ObjectChanged):
        await cluster.patch(TRANSFORMERS, own_namespace, "rounding", patch, subresource=subresource)


async def test_patch_with_another_uid_is_a_conflict(cluster, own_namespace):
    await cluster.create(TRANSFORMERS, own_namespace, a_transformer())
    patch = {"metadata": {"uid": "2a4f1a61-0000-4000-8000-000000000000", "labels": {"a": "b"}}}
    with pytest.raises(ObjectChanged):
        await cluster.patch(TRANSFORMERS, own_namespace, "rounding", patch)


async def test_status_of_an_object_that_came_again_is_a_conflict(cluster, own_namespace):
    first = Metadata.of(await cluster.create(TRANSFORMERS, own_namespace, a_transformer()))
    await cluster.delete(TRANSFORMERS, own_namespace, "rounding", uid=first.uid)
    await cluster.create(TRANSFORMERS, own_namespace, a_transformer())
    metadata = {"resourceVersion": first.resource_version, "uid": first.uid}
    patch = {"metadata": metadata, "status": {"observedGeneration": 1}}
    with pytest.raises(ObjectChanged):
        await cluster.patch(TRANSFORMERS, own_namespace, "rounding", patch, subresource="status")


async def test_replace_needs_the_current_version(cluster, own_namespace):
    before = await cluster.create(TRANSFORMERS, own_namespace, a_transformer())
    other = a_transformer(sql="value + 1")["spec"]
    after = await cluster.replace(TRANSFORMERS, own_namespace, before | {"spec": other})
    assert after["spec"] == other
    with pytest.raises(ObjectChanged):
        await cluster.replace(TRANSFORMERS, own_namespace, before | {"spec": other})


async def test_replace_of_an_absent_object_finds_it_missing(cluster, own_namespace):
    created = await cluster.create(TRANSFORMERS, own_namespace, a_transformer())
    await cluster.delete(TRANSFORMERS, own_namespace, "rounding", uid=Metadata.of(created).uid)
    with pytest.raises((ObjectMissing, ObjectChanged)):
        await cluster.replace(TRANSFORMERS, own_namespace, created)


async def test_generation_counts_specs_only(cluster, own_namespace):
    created = await cluster.create(TRANSFORMERS, own_namespace, a_transformer())
    status = {"status": {"observedGeneration": 1}}
    await cluster.patch(TRANSFORMERS, own_namespace, "rounding", status, subresource="status")
    labels = {"metadata": {"labels": {"a": "b"}}}
    same = await cluster.patch(TRANSFORMERS, own_namespace, "rounding", labels)
    other = {"spec": a_transformer(sql="value + 1")["spec"]}
    changed = await cluster.patch(TRANSFORMERS, own_namespace, "rounding", other)
    assert [Metadata.of(found).generation for found in (created, same, changed)] == [1, 1, 2]


async def test_status_is_written_apart_from_the_rest(cluster, own_namespace):
    status = {"observedGeneration": 7}
    created = await cluster.create(
        TRANSFORMERS, own_namespace, a_transformer() | {"status": status}
    )
    assert "status" not in created
    untouched = await cluster.patch(TRANSFORMERS, own_namespace, "rounding", {"status": status})
    assert "status" not in untouched
    patch = {
        "metadata": {"labels": {"a": "b"}},
        "spec": a_transformer(sql="1")["spec"],
        "status": status,
    }
    patched = await cluster.patch(
        TRANSFORMERS, own_namespace, "rounding", patch, subresource="status"
    )
    assert (patched["status"], patched["spec"]) == (status, created["spec"])
    assert Metadata.of(patched).generation == 1
    again = await cluster.patch(TRANSFORMERS, own_namespace, "rounding", {"status": None})
    assert again["status"] == status


async def test_status_that_becomes_null_is_gone(cluster, own_namespace):
    await cluster.create(TRANSFORMERS, own_namespace, a_transformer())
    both = {"status": {"observedGeneration": 1, "usedBy": {"count": 1, "names": ["DataSource/a"]}}}
    await cluster.patch(TRANSFORMERS, own_namespace, "rounding", both, subresource="status")
    less = {"status": {"usedBy": None}}
    patched = await cluster.patch(
        TRANSFORMERS, own_namespace, "rounding", less, subresource="status"
    )
    assert patched["status"] == {"observedGeneration": 1}


async def test_delete_ends_the_object_with_that_uid_only(cluster, own_namespace):
    created = await cluster.create(CONFIG_MAPS, own_namespace, a_config_map("a"))
    other = "2a4f1a61-0000-4000-8000-000000000000"
    await cluster.delete(CONFIG_MAPS, own_namespace, "a", uid=other)
    assert await cluster.get(CONFIG_MAPS, own_namespace, "a") == created
    await cluster.delete(CONFIG_MAPS, own_namespace, "a", uid=Metadata.of(created).uid)
    await until_gone(cluster, CONFIG_MAPS, own_namespace, "a")


async def test_finalizer_holds_a_deleted_object(cluster, own_namespace):
    held = a_transformer(finalizers=["example.org/held"])
    uid = Metadata.of(await cluster.create(TRANSFORMERS, own_namespace, held)).uid
    await cluster.delete(TRANSFORMERS, own_namespace, "rounding", uid=uid)
    await cluster.delete(TRANSFORMERS, own_namespace, "rounding", uid=uid)
    found = Metadata.of(await cluster.get(TRANSFORMERS, own_namespace, "rounding"))
    assert (found.is_deleting, found.generation) == (True, 2)
    more = {"metadata": {"finalizers": ["example.org/held", "example.org/more"]}}
    with pytest.raises(ObjectRefused):
        await cluster.patch(TRANSFORMERS, own_namespace, "rounding", more)
    await cluster.patch(TRANSFORMERS, own_namespace, "rounding", {"metadata": {"finalizers": None}})
    with pytest.raises(ObjectMissing):
        await cluster.get(TRANSFORMERS, own_namespace, "rounding")


async def test_owned_objects_go_after_their_owner(cluster, own_namespace):
    owner = await cluster.create(TRANSFORMERS, own_namespace, a_transformer())
    owned = a_config_map("owned", ownerReferences=owned_by(owner))
    child = await cluster.create(CONFIG_MAPS, own_namespace, owned)
    owned = a_config_map("grandchild", ownerReferences=owned_by(child))
    await cluster.create(CONFIG_MAPS, own_namespace, owned)
    await cluster.delete(TRANSFORMERS, own_namespace, "rounding", uid=Metadata.of(owner).uid)
    await until_gone(cluster, CONFIG_MAPS, own_namespace, "owned")
    await until_gone(cluster, CONFIG_MAPS, own_namespace, "grandchild")


async def test_object_of_a_deleted_owner_is_deleted(cluster, own_namespace):
    owner = await cluster.create(TRANSFORMERS, own_namespace, a_transformer())
    await cluster.delete(TRANSFORMERS, own_namespace, "rounding", uid=Metadata.of(owner).uid)
    owned = a_config_map("late", ownerReferences=owned_by(owner))
    await cluster.create(CONFIG_MAPS, own_namespace, owned)
    await until_gone(cluster, CONFIG_MAPS, own_namespace, "late")


async def test_names_come_again_and_uids_do_not(cluster, own_namespace):
    first = await cluster.create(CONFIG_MAPS, own_namespace, a_config_map("a"))
    await cluster.delete(CONFIG_MAPS, own_namespace, "a", uid=Metadata.of(first).uid)
    second = await cluster.create(CONFIG_MAPS, own_namespace, a_config_map("a"))
    assert Metadata.of(first).uid != Metadata.of(second).uid


async def test_pods_are_read_like_everything_else(cluster, own_namespace):
    assert (await cluster.list(PODS, namespace=own_namespace)).items == ()
