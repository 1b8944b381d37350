"""The webhook over HTTPS: a proper answer to every request, in time, by the newest certificate."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from prometheus_client import CollectorRegistry
from support.declared.declarations import files, model, output, spoilt
from support.operator.clusters import until
from support.operator.fakecluster import FakeCluster
from support.operator.reviews import VerdictsInProcess, a_review
from support.operator.webhooks import (
    HOST,
    Ports,
    WebhookClient,
    a_webhook,
    asking,
    install,
    serving_webhook,
    settings_for,
)
from support.servers.certificates import Authority

from snaploom_operator.admission.judge import Judge, Judgement
from snaploom_operator.admission.request import LARGEST_BODY
from snaploom_operator.admission.webhook import AdmissionMetrics, Webhook
from snaploom_operator.cluster.port import OURS
from snaploom_operator.serve.health import metrics_application
from snaploom_operator.serve.http import serving
from snaploom_operator.settings import AdmissionSettings
from snaploom_operator.store.store import Store


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster(namespaces=["team"])


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "authority")


@pytest.fixture
async def client(
    cluster: FakeCluster, tmp_path: Path, authority: Authority
) -> AsyncIterator[WebhookClient]:
    async with a_webhook(cluster, tmp_path, authority) as client:
        yield client


async def test_a_sound_object_is_let_through(cluster: FakeCluster, client: WebhookClient) -> None:
    answer = await client.review(files("customer"))
    assert answer == {"uid": "of-this-request", "allowed": True}


async def test_a_wrong_object_is_refused_with_every_finding(client: WebhookClient) -> None:
    wrong = spoilt(output(), "spec.dataModel.maxDepht", 3)
    wrong = spoilt(wrong, "spec.outputFolder.folderUri", "nowhere")
    answer = await client.review(wrong)
    status = answer["status"]
    assert (answer["allowed"], status["code"], status["reason"]) == (False, 422, "Invalid")
    assert "OutputDataset/wide spec.dataModel.maxDepht: there is no field" in status["message"]
    assert "  fix:      did you mean" in status["message"]
    assert [cause["field"] for cause in status["details"]["causes"]] == [
        "spec.dataModel.maxDepht",
        "spec.outputFolder",
    ]


async def test_what_the_cluster_has_is_known(cluster: FakeCluster, client: WebhookClient) -> None:
    assert len((await client.review(output()))["warnings"]) == 3
    for raw in model()[:-1]:
        await cluster.create(OURS[raw["kind"]], "team", raw)

    async def is_known() -> bool:
        return "warnings" not in await client.review(output())

    await until(is_known)


def of_version(version: str) -> bytes:
    return json.dumps(a_review(files("a")) | {"apiVersion": version}).encode()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(b"", 400, id="empty"),
        pytest.param(b"{", 400, id="torn"),
        pytest.param(b"\xff\xfe", 400, id="no text"),
        pytest.param(b"[]", 400, id="a list"),
        pytest.param(b'{"request":' + b"[" * 100000 + b"]" * 100000 + b"}", 400, id="deep"),
        pytest.param(b'{"request": NaN}', 400, id="no JSON"),
        pytest.param(of_version("admission.k8s.io/v1beta1"), 400, id="former version"),
        pytest.param(of_version("v1"), 400, id="other kind"),
        pytest.param(b" " * (LARGEST_BODY + 1), 413, id="too large"),
    ],
)
async def test_what_is_no_review_gets_a_proper_answer(client, body, expected):
    status, answer = await client.post(body)
    assert (status, answer["kind"], answer["code"]) == (expected, "Status", expected)
    assert "Traceback" not in answer["message"]


async def test_a_review_as_large_as_may_be_is_answered(client: WebhookClient) -> None:
    large = spoilt(files("a"), "metadata.annotations", {"a": "x" * 250_000})
    filled = a_review(large, spoilt(large, "spec.hdfsLike.format", "orc"))
    filled["request"]["ignored"] = "x" * (LARGEST_BODY - len(json.dumps(filled)) - 100)
    status, answer = await client.post(json.dumps(filled).encode())
    assert (status, answer["response"]["allowed"]) == (200, True)


Judging = Callable[[bytes], Awaitable[Judgement]]


@asynccontextmanager
async def a_server(
    judge: Judging, tmp_path: Path, authority: Authority, **limits: float
) -> AsyncIterator[WebhookClient]:
    """The server on its own, over any judge."""
    issued = authority.issue(HOST)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(issued.certificate, issued.key)
    registry = CollectorRegistry()
    webhook = Webhook(judge, AdmissionMetrics(registry), **limits)  # type: ignore[arg-type]
    async with (
        serving(webhook.application(), HOST, 0, context) as port,
        serving(metrics_application(registry), HOST, 0) as metrics,
        asking(Ports(port, 0, metrics), authority) as client,
    ):
        yield client


async def test_a_review_that_takes_too_long_is_given_up(tmp_path, authority):
    async def never(body: bytes) -> Judgement:
        await asyncio.Event().wait()
        raise AssertionError

    async with a_server(never, tmp_path, authority, deadline=0.05) as client:
        assert (await client.post(b"{}"))[0] == 504


async def test_too_many_reviews_at_once_are_rejected(tmp_path: Path, authority: Authority) -> None:
    may_end, count = asyncio.Event(), 0

    async def waiting(body: bytes) -> Judgement:
        nonlocal count
        count += 1
        await may_end.wait()
        return await a_judge().judge(body)

    async with a_server(waiting, tmp_path, authority, most=2) as client:
        first = [asyncio.create_task(client.review(files("a"))) for _ in range(2)]

        async def are_under_way() -> bool:
            return count == 2

        await until(are_under_way)
        assert (await client.post(b"{}"))[0] == 503
        may_end.set()
        assert all(answer["allowed"] for answer in await asyncio.gather(*first))
        assert (await client.review(files("a")))["allowed"]


def a_judge() -> Judge:
    return Judge(Store(), AdmissionSettings(), ThreadPoolExecutor(2), VerdictsInProcess())


async def test_a_fault_of_ours_is_logged_and_not_shown(tmp_path, authority, caplog):
    async def broken(body: bytes) -> Judgement:
        raise ZeroDivisionError("secret of ours")

    async with a_server(broken, tmp_path, authority) as client:
        status, answer = await client.post(b"{}")
        assert status == 500
        assert "secret of ours" not in str(answer)
        assert "review failed" in caplog.text
        assert 'outcome="failed"' in (await client.text(client.ports.metrics, "/metrics"))[1]


async def test_a_review_under_way_is_finished_when_the_server_ends(tmp_path, authority):
    has_begun, may_end = asyncio.Event(), asyncio.Event()

    async def waiting(body: bytes) -> Judgement:
        has_begun.set()
        await may_end.wait()
        return await a_judge().judge(body)

    async with AsyncExitStack() as stack:
        server = a_server(waiting, tmp_path, authority)
        ports = (await server.__aenter__()).ports
        client = await stack.enter_async_context(asking(ports, authority))
        review = asyncio.create_task(client.review(files("a")))
        await has_begun.wait()
        ending = asyncio.create_task(server.__aexit__(None, None, None))
        await until_refused(ports.review)
        may_end.set()
        assert (await review)["allowed"]
        await ending


async def until_refused(port: int) -> None:
    async def is_refused() -> bool:
        try:
            _, writer = await asyncio.open_connection(HOST, port)
        except ConnectionRefusedError:
            return True
        writer.close()
        return False

    await until(is_refused)


async def test_metrics_count_reviews_by_outcome(client: WebhookClient) -> None:
    await client.review(files("a"))
    await client.review(output())
    await client.review(spoilt(output(), "spec.dataModel.maxDepth", 0))
    await client.review(None, files("a"))
    await client.post(b"{}")
    text = (await client.text(client.ports.metrics, "/metrics"))[1]
    for labels in (
        'kind="DataSource",operation="CREATE",outcome="allowed"',
        'kind="OutputDataset",operation="CREATE",outcome="warned"',
        'kind="OutputDataset",operation="CREATE",outcome="denied"',
        'kind="DataSource",operation="DELETE",outcome="allowed"',
        'kind="",operation="",outcome="unreadable"',
    ):
        assert f"snaploom_admission_review_seconds_count{{{labels}}} 1.0" in text
    assert "snaploom_admission_view_resources 0.0" in text
    assert "snaploom_webhook_certificate_expiry_timestamp_seconds 1." in text


async def test_an_old_version_of_tls_is_refused(client: WebhookClient) -> None:
    client.trusted.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        client.trusted.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(aiohttp.ClientConnectorError):
        await client.review(files("a"))


async def test_it_is_ready_once_there_is_a_certificate(cluster, tmp_path, authority):
    folder = tmp_path / "certificates"
    async with (
        serving_webhook(cluster, settings_for(folder)) as ports,
        asking(ports, authority) as client,
    ):
        assert await client.readiness() == "no certificate is loaded yet"
        install(authority.issue(HOST), folder)
        await client.until_ready()
        assert (await client.review(files("a")))["allowed"]


def swapped_in_place(folder: Path, authority: Authority) -> None:
    install(authority.issue(HOST, "second"), folder)


def swapped_by_link(folder: Path, authority: Authority) -> None:
    """As Kubernetes does: the files are links into a folder that is a link itself."""
    install(authority.issue(HOST, "second"), folder / "..second")
    (folder / "..new").symlink_to("..second")
    (folder / "..new").rename(folder / "..data")


@pytest.mark.parametrize("swap", [swapped_in_place, swapped_by_link])
async def test_a_new_certificate_is_served_without_a_restart(cluster, tmp_path, authority, swap):
    folder = tmp_path / "certificates"
    folder.mkdir()
    install(authority.issue(HOST), folder / "..first")
    (folder / "..data").symlink_to("..first")
    for name in ("tls.crt", "tls.key"):
        (folder / name).symlink_to(f"..data/{name}")
    other = Authority(tmp_path, "other")
    async with (
        serving_webhook(cluster, settings_for(folder)) as ports,
        asking(ports, authority) as before,
        asking(ports, other) as after,
    ):
        await before.until_ready()
        assert (await before.review(files("a")))["allowed"]
        swap(folder, other)

        async def is_new() -> bool:
            try:
                return bool((await after.review(files("a")))["allowed"])
            except aiohttp.ClientConnectorCertificateError:
                return False

        await until(is_new)


async def test_a_certificate_without_its_key_is_not_used(cluster, tmp_path, authority, caplog):
    async with a_webhook(cluster, tmp_path, authority) as client:
        other = Authority(tmp_path, "other").issue(HOST)
        (tmp_path / "certificates" / "tls.crt").write_bytes(other.certificate.read_bytes())

        async def is_noticed() -> bool:
            return "cannot load" in caplog.text

        await until(is_noticed)
        assert (await client.review(files("a")))["allowed"]
