"""The adapter against a scripted server: pages, time-outs, broken connections."""

import asyncio
import time
from contextlib import aclosing
from pathlib import Path

import pytest
from support.operator.clusters import a_config_map
from support.operator.fakecluster import FakeCluster
from support.operator.scriptedapi import (
    Answer,
    a_page,
    a_status,
    failing,
    running_scripted_api,
    write_plain_kubeconfig,
)

from snaploom.models.common import parse_instant
from snaploom_operator.cluster import client as adapters
from snaploom_operator.cluster.client import (
    KubernetesCluster,
    LogLine,
    connect,
    pod_log,
    watching_session,
)
from snaploom_operator.cluster.port import CONFIG_MAPS, OURS
from snaploom_operator.cluster.requests import ATTEMPTS, Requests
from snaploom_operator.errors import (
    ApiUnavailable,
    ClusterError,
    NamespaceTerminating,
    NotAllowed,
    ObjectChanged,
    ObjectExists,
    ObjectMissing,
    ObjectRefused,
    ResourceUnknown,
    SettingsInvalid,
    TooManyRequests,
)
from snaploom_operator.objects import Metadata
from snaploom_operator.store.feed import DECLARATIONS, Feed
from snaploom_operator.store.store import Store

BROKEN = Answer(is_broken=True)
TOKEN = "token-of-a-test"
DEADLINE = 30.0


@pytest.fixture
async def api():
    async with running_scripted_api() as server:
        yield server


@pytest.fixture
def pauses():
    """Pauses of the adapter in seconds, which take no time here."""
    return []


@pytest.fixture
def exchanges():
    """Requests that were made, for metrics."""
    return []


@pytest.fixture
async def cluster(api, tmp_path, pauses, exchanges):
    async def pause(seconds):
        pauses.append(seconds)

    client = await connect(write_plain_kubeconfig(tmp_path / "kubeconfig", api.url, TOKEN))
    yield KubernetesCluster(
        Requests(client, lambda *exchange: exchanges.append(exchange), pause), page=2
    )
    await client.close()


def names(items):
    return [Metadata.of(item).name for item in items]


async def test_request_names_its_client_and_asks_for_json(cluster, api):
    api.answers(Answer(body=a_config_map("a")))
    await cluster.get(CONFIG_MAPS, "default", "a")
    (asked,) = api.asked
    assert asked.path == "/api/v1/namespaces/default/configmaps/a"
    assert asked.headers["Authorization"] == f"Bearer {TOKEN}"
    assert asked.headers["User-Agent"] == "snaploom-operator"


async def test_list_is_read_in_pages_until_the_last(cluster, api):
    pages = [a_page([a_config_map("a"), a_config_map("b")], "7", "next")]
    api.answers(*pages, a_page([a_config_map("c")], "7"))
    listing = await cluster.list(CONFIG_MAPS, selector="a=b,c in (d, e)")
    assert (names(listing.items), listing.resource_version) == (["a", "b", "c"], "7")
    assert [asked.query.get("continue") for asked in api.asked] == [None, "next"]
    assert {asked.query["labelSelector"] for asked in api.asked} == {"a=b,c in (d, e)"}
    assert {asked.query["limit"] for asked in api.asked} == {"2"}


async def test_page_is_asked_for_while_the_one_before_it_is_taken_in(cluster, api):
    api.answers(a_page([a_config_map("a")], "7", "next"), a_page([a_config_map("b")], "7"))
    async with aclosing(cluster.pages(CONFIG_MAPS)) as pages:
        first = await anext(pages)
        async with asyncio.timeout(DEADLINE):
            while len(api.asked) < 2:
                await asyncio.sleep(0.01)
        assert names(first.items) == ["a"]
        assert names((await anext(pages)).items) == ["b"]


async def test_list_that_expires_between_pages_begins_again(cluster, api):
    first = a_page([a_config_map("a")], "7", "next")
    api.answers(first, failing(410, "Expired"), a_page([a_config_map("b")], "9"))
    listing = await cluster.list(CONFIG_MAPS)
    assert (names(listing.items), listing.resource_version) == (["b"], "9")


async def test_pages_mark_where_the_list_started_over(cluster, api):
    first = a_page([a_config_map("a")], "7", "next")
    again = (a_page([a_config_map("b")], "9", "next"), a_page([a_config_map("c")], "9"))
    api.answers(first, failing(410, "Expired"), *again)
    seen = [(names(page.items), page.is_first) async for page in cluster.pages(CONFIG_MAPS)]
    assert seen == [(["a"], True), (["b"], True), (["c"], False)]


async def test_list_that_expires_again_and_again_is_asked_for_in_one_piece(cluster, api):
    first = a_page([a_config_map("a")], "7", "next")
    script = [first, failing(410, "Expired")] * adapters.PAGED_TRIES
    api.answers(*script, a_page([a_config_map("all")], "9"))
    assert names((await cluster.list(CONFIG_MAPS)).items) == ["all"]
    assert "limit" not in api.asked[-1].query


@pytest.mark.parametrize("answer", [BROKEN, failing(503, "ServiceUnavailable"), Answer(body=b"<")])
async def test_read_is_repeated_until_it_is_answered(cluster, api, pauses, answer):
    api.answers(answer, answer, Answer(body=a_config_map("a")))
    assert names([await cluster.get(CONFIG_MAPS, "default", "a")]) == ["a"]
    assert pauses


async def test_read_is_not_repeated_for_ever(cluster, api, exchanges):
    api.answers(failing(500, "InternalError", "etcd is on holiday"))
    with pytest.raises(ApiUnavailable, match="get configmaps/a: etcd is on holiday"):
        await cluster.get(CONFIG_MAPS, "default", "a")
    assert len(api.asked) == ATTEMPTS
    assert [exchange[:3] for exchange in exchanges] == [("get", "configmaps", 500)] * 4


@pytest.mark.parametrize("answer", [BROKEN, failing(504, "Timeout")])
async def test_write_whose_answer_was_lost_is_not_repeated(cluster, api, answer):
    api.answers(answer)
    with pytest.raises(ApiUnavailable):
        await cluster.create(CONFIG_MAPS, "default", a_config_map("a"))
    with pytest.raises(ApiUnavailable):
        await cluster.patch(CONFIG_MAPS, "default", "a", {"data": {}})
    assert [asked.method for asked in api.asked] == ["POST", "PATCH"]


async def test_write_that_never_got_there_is_repeated(tmp_path, pauses, exchanges):
    async def pause(seconds):
        pauses.append(seconds)

    async with running_scripted_api() as gone:
        pass
    client = await connect(write_plain_kubeconfig(tmp_path / "kubeconfig", gone.url))
    cluster = KubernetesCluster(
        Requests(client, lambda *exchange: exchanges.append(exchange), pause)
    )
    with pytest.raises(ApiUnavailable):
        await cluster.create(CONFIG_MAPS, "default", a_config_map("a"))
    assert [code for _, _, code, _ in exchanges] == [0] * ATTEMPTS
    await client.close()


async def test_deletion_whose_answer_was_lost_is_repeated_for_that_uid(cluster, api):
    api.answers(BROKEN, failing(404, "NotFound", name="a"))
    await cluster.delete(CONFIG_MAPS, "default", "a", uid="u1")
    assert [asked.body["preconditions"] for asked in api.asked] == [{"uid": "u1"}] * 2


async def test_patience_that_is_asked_for_is_had(cluster, api, pauses):
    busy = Answer(429, a_status(429, "TooManyRequests"), {"Retry-After": "7"})
    api.answers(busy, Answer(body=a_config_map("a")))
    await cluster.create(CONFIG_MAPS, "default", a_config_map("a"))
    assert len(api.asked) == 2
    assert 7 < pauses[0] < 8


async def test_patience_for_long_is_left_to_the_caller(cluster, api):
    api.answers(Answer(429, a_status(429, "TooManyRequests"), {"Retry-After": "300"}))
    with pytest.raises(TooManyRequests) as failure:
        await cluster.create(CONFIG_MAPS, "default", a_config_map("a"))
    assert failure.value.after == 300
    assert len(api.asked) == 1


ADMISSION = 'admission webhook "policy.example.org" denied the request: no'
RBAC = 'configmaps is forbidden: User "system:x" cannot create resource "configmaps" in API group'
QUOTA = 'configmaps "a" is forbidden: exceeded quota: small, requested: count/configmaps=1'
CEL = "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request"
GOING = {"causes": [{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]}
UID = {"causes": [{"reason": "FieldValueInvalid", "field": "metadata.uid"}]}


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (failing(400, "BadRequest"), ObjectRefused),
        (failing(401, "Unauthorized"), NotAllowed),
        (failing(403, "Forbidden", RBAC), NotAllowed),
        (failing(403, "Forbidden", QUOTA), ObjectRefused),
        (failing(403, "Forbidden", CEL), ObjectRefused),
        (failing(403, "Forbidden", ADMISSION), ObjectRefused),
        (failing(403, "Forbidden", **GOING), NamespaceTerminating),
        (failing(404, "NotFound", kind="namespaces", name="default"), NamespaceTerminating),
        (Answer(404, b"404 page not found\n"), ResourceUnknown),
        (failing(405, "MethodNotAllowed"), ClusterError),
        (failing(409, "AlreadyExists"), ObjectExists),
        (failing(409, "Conflict"), ObjectChanged),
        (failing(409, "Conflict", ADMISSION), ObjectRefused),
        (failing(413, "RequestEntityTooLarge"), ObjectRefused),
        (failing(422, "Invalid"), ObjectRefused),
        (failing(422, "Invalid", **UID), ObjectChanged),
        (failing(500, "InternalError"), ApiUnavailable),
    ],
)
async def test_failed_create_raises_its_cause(cluster, api, answer, error):
    api.answers(answer)
    with pytest.raises(ClusterError) as failure:
        await cluster.create(CONFIG_MAPS, "default", a_config_map("a"))
    assert type(failure.value) is error


async def test_missing_right_to_read_raises_its_own_error(cluster, api):
    api.answers(failing(403, "Forbidden"))
    with pytest.raises(NotAllowed):
        await cluster.get(CONFIG_MAPS, "default", "a")


async def test_message_of_the_server_is_cut_where_it_has_no_end(cluster, api):
    api.answers(failing(422, "Invalid", "x" * 100_000))
    with pytest.raises(ObjectRefused) as failure:
        await cluster.create(CONFIG_MAPS, "default", a_config_map("a"))
    assert len(failure.value.message) < 1_100


async def test_path_of_a_resource_names_group_and_version(cluster, api):
    api.answers(Answer(body={}))
    sources = OURS["DataSource"]
    await cluster.patch(sources, "default", "a", {"status": {}}, subresource="status")
    (asked,) = api.asked
    assert asked.path == "/apis/snaploom.io/v1alpha1/namespaces/default/datasources/a/status"
    assert asked.headers["Content-Type"] == "application/merge-patch+json"


async def test_name_cannot_leave_its_place_in_the_path(cluster, api):
    api.answers(failing(404, "NotFound", name="x"))
    with pytest.raises(ObjectMissing):
        await cluster.get(CONFIG_MAPS, "default", "a/../../x?y=1")
    assert api.asked[0].path == "/api/v1/namespaces/default/configmaps/a%2F..%2F..%2Fx%3Fy=1"


@pytest.mark.parametrize("content", [None, "", "no: [kubeconfig", "{}"])
async def test_missing_connection_settings_raise_an_error(tmp_path, content):
    file = tmp_path / "kubeconfig"
    if content is not None:
        file.write_text(content)
    with pytest.raises(SettingsInvalid, match="KUBECONFIG"):
        await connect(file)


SINCE = "2026-01-01T00:00:00Z"
TIME = "2026-01-01T00:00:01.234567891Z"


async def test_lines_have_the_time_at_which_the_node_took_them_in(tmp_path: Path) -> None:
    async with running_scripted_api() as server:
        server.answers(Answer(lines=(f"{TIME} published 7 rows\n".encode(), b"of no time\n")))
        kubeconfig = write_plain_kubeconfig(tmp_path / "config", server.url)
        log = pod_log("team", "driver", is_followed=True, since=SINCE, kubeconfig=kubeconfig)
        found = [line async for line in log]
    assert found[0] == LogLine(parse_instant(TIME), "published 7 rows")
    assert found[1].text == "of no time"
    (asked,) = server.asked
    assert asked.path == "/api/v1/namespaces/team/pods/driver/log"
    assert asked.query == {"timestamps": "true", "follow": "true", "sinceTime": SINCE}


async def test_a_log_that_ends_is_asked_for_as_a_whole(tmp_path: Path) -> None:
    async with running_scripted_api() as server:
        server.answers(Answer(lines=(f"{TIME} \n".encode(),)))
        kubeconfig = write_plain_kubeconfig(tmp_path / "config", server.url)
        log = pod_log("team", "driver", is_followed=False, kubeconfig=kubeconfig)
        assert [line.text async for line in log] == [""]
    assert server.asked[0].query == {"timestamps": "true"}


@pytest.mark.parametrize("is_answered", [True, False])
async def test_a_session_reads_no_list_that_its_follower_has_read(api, tmp_path, is_answered):
    failed = failing(500, "InternalError")
    api.answers(a_page([{}]) if is_answered else failed, a_page([{"kind": "DataSource"}], "8"))
    feed = Feed(Store(), FakeCluster(), DECLARATIONS, (), time.monotonic)
    await feed.list_all()
    kubeconfig = write_plain_kubeconfig(tmp_path / "kubeconfig", api.url)
    server, session = await watching_session(kubeconfig, None, "test", feed)
    url = f"{server}/apis/snaploom.io/v1alpha1/datasources?limit=100"
    async with session:
        first, second = [await session.get(url) for _ in range(2)]
        if is_answered:
            assert await first.json() == {"metadata": {"resourceVersion": "1"}, "items": []}
        assert (await second.json())["items"] == [{"kind": "DataSource"}]
    assert [asked.query["limit"] for asked in api.asked] == ["1", "100"]
