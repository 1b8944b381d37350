"""The adapter over a real API server that goes away, comes back, and has forgotten."""

import asyncio
import json
import urllib.request
from contextlib import aclosing

import pytest
from support.cluster.cluster import running_control_plane
from support.operator.clusters import a_config_map, until

from snaploom_operator.cluster.adapter import open_cluster
from snaploom_operator.cluster.apiresources import CONFIG_MAPS
from snaploom_operator.errors import ApiUnavailable, WatchExpired
from snaploom_operator.objectmetadata import Metadata


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    """A control plane whose servers these tests may stop and start."""
    with running_control_plane(tmp_path_factory.mktemp("outage")) as running:
        yield running


@pytest.fixture
async def cluster(plane):
    async with open_cluster(plane.kubeconfig) as adapter:
        yield adapter


async def restart(plane):
    await asyncio.to_thread(plane.apiserver.kill)
    await asyncio.to_thread(plane.apiserver.start)
    await asyncio.to_thread(plane.await_ready)


def forget_past(plane, version):
    """What the API server has etcd do every five minutes, at once."""
    words = [str(word) for word in plane.etcd.command]
    url = next(w.partition("=")[2] for w in words if w.startswith("--listen-client-urls="))
    body = json.dumps({"revision": int(version)}).encode()
    with urllib.request.urlopen(f"{url}/v3/kv/compaction", body, timeout=30) as answer:
        assert answer.status == 200


async def test_adapter_outlives_an_outage_of_the_api_server(plane, cluster):
    before = await cluster.create(CONFIG_MAPS, "default", a_config_map("before"))
    plane.apiserver.kill()
    with pytest.raises(ApiUnavailable):
        await cluster.create(CONFIG_MAPS, "default", a_config_map("during"))
    await restart(plane)
    assert await cluster.get(CONFIG_MAPS, "default", "before") == before
    await cluster.create(CONFIG_MAPS, "default", a_config_map("after"))


async def test_watch_of_a_compacted_version_expires(plane, cluster):
    old = await cluster.create(CONFIG_MAPS, "default", a_config_map("old"))
    await cluster.create(CONFIG_MAPS, "default", a_config_map("new"))
    forget_past(plane, (await cluster.list(CONFIG_MAPS)).resource_version)
    await restart(plane)
    since = Metadata.of(old).resource_version
    with pytest.raises(WatchExpired):
        async with aclosing(cluster.watch(CONFIG_MAPS, since=since)) as stream:
            await anext(stream)


async def test_watch_is_taken_up_after_an_outage(plane, cluster):
    seen = set()
    following = asyncio.create_task(follow(cluster, seen))

    async def is_seen(name):
        return name in seen

    await cluster.create(CONFIG_MAPS, "default", a_config_map("watched-before"))
    await until(lambda: is_seen("watched-before"))
    await restart(plane)
    await cluster.create(CONFIG_MAPS, "default", a_config_map("watched-after"))
    await until(lambda: is_seen("watched-after"))
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def follow(cluster, seen):
    """What the webhook does: list, watch, and again after any error."""
    while True:
        try:
            listing = await cluster.list(CONFIG_MAPS, namespace="default")
            seen.update(Metadata.of(item).name for item in listing.items)
            since = listing.resource_version
            stream = cluster.watch(CONFIG_MAPS, namespace="default", since=since)
            async with aclosing(stream):
                async for change in stream:
                    seen.add(Metadata.of(change.object).name)
        except ApiUnavailable:
            await asyncio.sleep(0.1)
