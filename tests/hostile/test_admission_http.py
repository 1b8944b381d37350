"""What somebody who reaches the webhook's port can do to it: nothing that others notice."""

import asyncio
import gzip
import json
import resource
import ssl
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import ClientSession, web
from hostile.rawhttp import RawConnection, raw_connection, request
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from support.declared.declarations import files, spoilt
from support.operator.clusters import until
from support.operator.fakecluster import FakeCluster
from support.operator.reviews import a_review
from support.operator.webhooks import HOST, WebhookClient, a_webhook
from support.servers.certificates import Authority

from snaploom_operator.admission.request import LARGEST_BODY, MOST_VALUES, parse_review
from snaploom_operator.admission.webhook import MOST_BODIES
from snaploom_operator.errors import ReviewUnreadable
from snaploom_operator.serve.health import metrics_application
from snaploom_operator.serve.http import MOST_ANSWERS, NoTurn, Turns, serving

MEGABYTE = 1024 * 1024


@pytest.fixture
async def asker(tmp_path: Path) -> AsyncIterator[WebhookClient]:
    authority = Authority(tmp_path, "authority")
    async with a_webhook(FakeCluster(namespaces=["team"]), tmp_path, authority) as asker:
        yield asker


@asynccontextmanager
async def connected(asker: WebhookClient) -> AsyncIterator[RawConnection]:
    async with raw_connection(HOST, asker.ports.review, asker.trusted) as connection:
        yield connection


async def is_well(asker: WebhookClient) -> bool:
    answer = await asker.review(files("customer"))
    return answer["allowed"] is True


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "GZIP", "gzip, gzip"])
async def test_a_compressed_body_is_refused_and_never_unpacked(asker, coding):
    bomb = gzip.compress(b" " * (64 * MEGABYTE))
    before = peak_megabytes()
    async with connected(asker) as connection:
        headers = (f"Content-Encoding: {coding}", f"Content-Length: {len(bomb)}")
        await connection.send(request(bomb, *headers))
        assert await connection.status() == 415
    assert peak_megabytes() - before < 32
    assert await is_well(asker)


async def test_a_body_that_comes_slowly_is_given_up(asker: WebhookClient) -> None:
    async with connected(asker) as connection:
        await connection.send(request(b"{", "Content-Length: 1000"))
        assert await connection.status() == 504
    assert await is_well(asker)


async def half_sent(asker: WebhookClient, peer: str, stack: AsyncExitStack) -> list[RawConnection]:
    """As many bodies as are read at a time, which all lack their end."""
    found = []
    for _ in range(MOST_BODIES):
        connection = raw_connection(HOST, asker.ports.review, asker.trusted, peer)
        found.append(await stack.enter_async_context(connection))
        await found[-1].send(request(b"{", "Content-Length: 1000"))
    return found


async def test_half_sent_bodies_take_no_place_from_reviews_of_others(asker, monkeypatch):
    monkeypatch.setattr("snaploom_operator.admission.webhook.BODY_SECONDS", 60.0)
    async with AsyncExitStack() as stack:
        held = await half_sent(asker, "127.0.0.3", stack)
        assert all(await asyncio.gather(*(is_well(asker) for _ in range(8))))
        assert await held[0].status() == 504


async def test_half_sent_bodies_of_one_sender_are_given_up_after_a_second(asker):
    async with AsyncExitStack() as stack:
        held = await half_sent(asker, "127.0.0.1", stack)
        assert {await each.status() for each in held} == {504}
        assert await is_well(asker)


async def test_a_body_larger_than_allowed_is_refused_before_it_is_held(asker):
    async with connected(asker) as connection:
        await connection.send(request(b"", "Transfer-Encoding: chunked"))
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        for _ in range(LARGEST_BODY // 0x10000 + 2):
            await connection.send(chunk)
        assert await connection.status() == 413
    assert await is_well(asker)


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"{}", ("Content-Length: 2", "Content-Length: 3")),
        (b"2\r\n{}\r\n0\r\n\r\n", ("Content-Length: 2", "Transfer-Encoding: chunked")),
        (b"2;" + b"x" * 100_000, ("Transfer-Encoding: chunked",)),
        (b"ffffffffffffffffffff\r\n", ("Transfer-Encoding: chunked",)),
        (b"-1\r\n{}", ("Transfer-Encoding: chunked",)),
        (b"0\r\n" + b"A: b\r\n" * 20_000, ("Transfer-Encoding: chunked",)),
        (b"", ("X: " + "y" * 100_000,)),
        (b"", tuple(f"X-{number}: y" for number in range(10_000))),
        (b"", ("Content-Length: -5",)),
        (b"", ("Content-Length: 99999999999999999999999",)),
    ],
)
async def test_what_is_no_request_is_refused_or_cut_off(asker, body, headers):
    async with connected(asker) as connection:
        with_errors = (ConnectionError, ssl.SSLError)
        try:
            await connection.send(request(body, *headers))
            assert await connection.status() in (0, 400, 413, 431, 504)
        except with_errors:
            pass  # cut off while it was sent
    assert await is_well(asker)


def review_with(text: str) -> bytes:
    whole = json.dumps(a_review(spoilt(files("a"), "spec.hdfsLike.format", "HERE")))
    return whole.replace('"HERE"', text).encode()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("9" * (2 * MEGABYTE), id="huge whole number"),
        pytest.param("1." + "9" * (2 * MEGABYTE), id="long fraction"),
        pytest.param("1e" + "9" * 100_000, id="huge exponent"),
        pytest.param("[" * 100_000 + "]" * 100_000, id="deep lists"),
        pytest.param('{"a":' * 100_000 + "1" + "}" * 100_000, id="deep objects"),
        pytest.param('{"%s":1}' % ("k" * 2 * MEGABYTE), id="long key"),
        pytest.param("[" + ",".join(["[]"] * 800_000) + "]", id="many lists"),
        pytest.param("[" + ",".join(["1"] * 1_400_000) + "]", id="many numbers"),
        pytest.param("{" + ",".join(f'"{n}":1' for n in range(220_000)) + "}", id="many keys"),
        pytest.param('"\\ud800"', id="half a character"),
    ],
)
async def test_a_hostile_document_is_answered_at_once(asker: WebhookClient, text: str) -> None:
    begun, before = time.process_time(), peak_megabytes()
    status, answer = await asker.post(review_with(text))
    assert status == 400 or answer["response"]["allowed"] is False
    assert time.process_time() - begun < 1.5
    assert peak_megabytes() - before < 256
    assert len(json.dumps(answer)) < 64 * 1024


def test_as_many_values_as_may_be_are_read() -> None:
    legal = "[" + ",".join(["1"] * (MOST_VALUES - 1_000)) + "]"
    assert parse_review(review_with(legal)).name == "a"
    with pytest.raises(ReviewUnreadable, match="too many values"):
        parse_review(review_with("[" + ",".join(["1"] * (MOST_VALUES + 1)) + "]"))


@asynccontextmanager
async def a_server(tmp_path: Path, **limits: float) -> AsyncIterator[tuple[int, ssl.SSLContext]]:
    """A server that answers `ok`."""
    authority = Authority(tmp_path, "authority")
    issued = authority.issue(HOST)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(issued.certificate, issued.key)

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    application = web.Application()
    application.router.add_post("/validate", answer)
    async with serving(application, HOST, 0, context, **limits) as port:  # type: ignore[arg-type]
        yield port, ssl.create_default_context(cafile=authority.certificate)


async def test_a_connection_without_a_request_is_closed(tmp_path: Path) -> None:
    async with (
        a_server(tmp_path, idle=0.2) as (port, trusted),
        raw_connection(HOST, port, trusted) as silent,
        raw_connection(HOST, port, trusted) as slow,
    ):
        await slow.send(b"POST /validate HT")
        assert await silent.is_closed()
        assert await slow.is_closed()


async def test_many_idle_connections_leave_room_for_a_new_one(tmp_path: Path) -> None:
    async with a_server(tmp_path, most=5) as (port, trusted), AsyncExitStack() as stack:
        idle = [
            await stack.enter_async_context(raw_connection(HOST, port, trusted)) for _ in range(20)
        ]
        async with asyncio.timeout(20):
            await asyncio.gather(*(each.is_closed() for each in idle[:15]))
        async with raw_connection(HOST, port, trusted) as fresh:
            await fresh.send(request(b"{}", "Content-Length: 2"))
            assert await fresh.status() == 200


async def test_a_handshake_that_never_ends_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr("snaploom_operator.serve.http.HANDSHAKE_SECONDS", 0.2)
    async with a_server(tmp_path) as (port, _):
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(b"\x16\x03\x01")

        async def is_cut() -> bool:
            return await reader.read(1) == b"" or reader.at_eof()

        await until(is_cut)
        writer.close()


class Slow(Collector):
    """Metrics that take until they are let through."""

    def __init__(self) -> None:
        self.passed = threading.Event()
        self.threads: list[threading.Thread] = []

    def collect(self) -> Iterator[Metric]:
        self.threads.append(threading.current_thread())
        self.passed.wait(20)
        yield GaugeMetricFamily("slow", "Slow.", value=1)


async def test_metrics_are_computed_once_in_a_thread_for_a_few_who_ask() -> None:
    registry, slow = CollectorRegistry(), Slow()
    registry.register(slow)
    async with serving(metrics_application(registry), HOST, 0) as port, ClientSession() as session:

        async def ask() -> int:
            async with session.get(f"http://{HOST}:{port}/metrics") as response:
                await response.read()
                return response.status

        asked = [asyncio.create_task(ask()) for _ in range(50)]

        async def are_others_refused() -> bool:
            return sum(each.done() for each in asked) == 50 - MOST_ANSWERS

        await until(are_others_refused)
        slow.passed.set()
        statuses = await asyncio.gather(*asked)
        assert await ask() == 200
    assert (statuses.count(200), statuses.count(503)) == (MOST_ANSWERS, 50 - MOST_ANSWERS)
    (thread,) = slow.threads
    assert thread is not threading.current_thread()


async def test_a_client_that_reads_no_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("snaploom_operator.serve.http.ANSWER_SECONDS", 0.2)

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=bytes(64 * MEGABYTE))

    application = web.Application()
    application.router.add_get("/", answer)
    async with serving(application, HOST, 0, answers=1) as port:
        _, writer = await asyncio.open_connection(HOST, port, limit=1)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")

        async def has_turn() -> bool:
            other, question = await asyncio.open_connection(HOST, port)
            question.write(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
            status = await other.readline()
            question.close()
            return b"200" in status

        await until(has_turn)
        writer.close()


async def test_turns_are_shared_among_peers() -> None:
    turns, given_up = Turns(4), []

    async def hold(peer: str, number: int) -> None:
        try:
            async with turns.turn(peer, 20):
                await asyncio.Event().wait()
        except TimeoutError:
            given_up.append((peer, number))

    held = [asyncio.create_task(hold("greedy", number)) for number in range(4)]
    await asyncio.sleep(0)
    with pytest.raises(NoTurn):
        await turns.turn("greedy", 20).__aenter__()
    held += [asyncio.create_task(hold(f"other-{number}", 4)) for number in range(3)]
    await asyncio.gather(*held[:3])
    assert given_up == [("greedy", 0), ("greedy", 1), ("greedy", 2)]
    for each in held:
        each.cancel()
    await asyncio.gather(*held, return_exceptions=True)
    async with turns.turn("greedy", 20):
        pass
