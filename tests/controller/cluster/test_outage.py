"""The adapter over a real API server that goes away, comes back, and has forgotten."""

import asyncio

import pytest
from support.cluster.cluster import running_control_plane
from support.operator.clusters import a_config_map

from snaploom_operator.cluster.client import open_cluster
from snaploom_operator.cluster.port import CONFIG_MAPS
from snaploom_operator.errors import ApiUnavailable


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
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


async def test_adapter_outlives_an_outage_of_the_api_server(plane, cluster):
    before = await cluster.create(CONFIG_MAPS, "default", a_config_map("before"))
    plane.apiserver.kill()
    with pytest.raises(ApiUnavailable):
        await cluster.create(CONFIG_MAPS, "default", a_config_map("during"))
    await restart(plane)
    assert await cluster.get(CONFIG_MAPS, "default", "before") == before
    await cluster.create(CONFIG_MAPS, "default", a_config_map("after"))
