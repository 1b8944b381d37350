"""Watches yield every change after a listing, from the cluster in memory and from a real one."""

import asyncio
from contextlib import aclosing

import pytest
from support.operator.clusters import TRANSFORMERS, a_config_map, a_transformer

from snaploom_operator.cluster.apiresources import CONFIG_MAPS
from snaploom_operator.cluster.port import ApiResource, ChangeType
from snaploom_operator.errors import ResourceUnknown, WatchExpired
from snaploom_operator.objectmetadata import Metadata

DEADLINE = 60.0


async def changes(stream, count):
    """So many changes, as type and name; bookmarks do not count."""
    found = []
    async with asyncio.timeout(DEADLINE):
        async for change in stream:
            if change.type is not ChangeType.BOOKMARK:
                found.append((change.type.value, Metadata.of(change.object).name))
            if len(found) == count:
                return found
    raise AssertionError("the watch ended")


async def test_watch_yields_what_happens_after_the_listing(cluster, own_namespace):
    await cluster.create(CONFIG_MAPS, own_namespace, a_config_map("before"))
    since = (await cluster.list(CONFIG_MAPS, namespace=own_namespace)).resource_version
    created = await cluster.create(CONFIG_MAPS, own_namespace, a_config_map("a"))
    async with aclosing(cluster.watch(CONFIG_MAPS, namespace=own_namespace, since=since)) as stream:
        first = await changes(stream, 1)
        await cluster.patch(CONFIG_MAPS, own_namespace, "a", {"data": {"x": "1"}})
        await cluster.delete(CONFIG_MAPS, own_namespace, "a", uid=Metadata.of(created).uid)
        rest = await changes(stream, 2)
    assert first + rest == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


async def test_watched_objects_are_as_they_are_read(cluster, own_namespace):
    since = (await cluster.list(TRANSFORMERS, namespace=own_namespace)).resource_version
    async with aclosing(
        cluster.watch(TRANSFORMERS, namespace=own_namespace, since=since)
    ) as stream:
        created = await cluster.create(TRANSFORMERS, own_namespace, a_transformer())
        async with asyncio.timeout(DEADLINE):
            change = await anext(stream)
    assert (change.type, change.object) == (ChangeType.ADDED, created)


async def test_watch_with_a_selector_sees_objects_come_and_go(cluster, own_namespace):
    since = (await cluster.list(CONFIG_MAPS, namespace=own_namespace)).resource_version
    stream = cluster.watch(
        CONFIG_MAPS, namespace=own_namespace, since=since, selector="role=report"
    )
    async with aclosing(stream):
        await cluster.create(
            CONFIG_MAPS, own_namespace, a_config_map("other", labels={"role": "plan"})
        )
        await cluster.create(
            CONFIG_MAPS, own_namespace, a_config_map("a", labels={"role": "report"})
        )
        labels = {"metadata": {"labels": {"role": None}}}
        await cluster.patch(CONFIG_MAPS, own_namespace, "a", labels)
        assert await changes(stream, 2) == [("ADDED", "a"), ("DELETED", "a")]


async def test_watch_of_all_namespaces_sees_the_object(cluster, own_namespace):
    since = (await cluster.list(TRANSFORMERS)).resource_version
    async with aclosing(cluster.watch(TRANSFORMERS, since=since)) as stream:
        created = await cluster.create(TRANSFORMERS, own_namespace, a_transformer())
        async with asyncio.timeout(DEADLINE):
            while (await anext(stream)).object != created:
                pass  # what earlier tests left is being deleted


async def test_watch_that_starts_too_early_expires(fake):
    since = (await fake.list(CONFIG_MAPS)).resource_version
    await fake.create(CONFIG_MAPS, "default", a_config_map("a"))
    fake.forget_past()
    with pytest.raises(WatchExpired):
        await anext(fake.watch(CONFIG_MAPS, since=since))


async def test_watch_of_an_unknown_kind_raises_an_error(cluster):
    things = ApiResource("snaploom.io", "v1alpha1", "things", "Thing")
    with pytest.raises(ResourceUnknown):
        async with asyncio.timeout(DEADLINE), aclosing(cluster.watch(things, since="1")) as stream:
            await anext(stream)
