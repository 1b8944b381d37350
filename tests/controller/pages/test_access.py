"""A request whose token the API server does not know has no user, and learns what to send."""

import asyncio
import threading

import pytest
from aiohttp import ClientSession
from prometheus_client import CollectorRegistry
from support.declared.declarations import output
from support.operator.fakecluster import FakeCluster
from support.operator.reviews import NAMESPACE, stored

from snaploom_operator.cluster.client import open_cluster
from snaploom_operator.errors import ApiUnavailable, NotAuthenticated
from snaploom_operator.serve import pages
from snaploom_operator.serve.health import AnswerCache
from snaploom_operator.serve.http import serving
from snaploom_operator.serve.pages import (
    LONGEST_TOKEN,
    Access,
    PageServer,
    PagesMetrics,
    StatusDocuments,
    User,
    documents,
)
from snaploom_operator.store.store import Store


@pytest.mark.parametrize(
    ("token", "found"),
    [
        ("", "none"),
        ("x" * (LONGEST_TOKEN + 1), f"a token of {LONGEST_TOKEN + 1:,} characters"),
        ("not-a-token", "one that is invalid, or has ended"),
    ],
)
async def test_a_token_of_nobody_is_not_authenticated(control_plane, token, found):
    async with open_cluster(control_plane.kubeconfig) as cluster:
        with pytest.raises(NotAuthenticated) as refused:
            await Access(cluster).user(token)
    assert refused.value.found == found
    assert not token or token not in str(refused.value)


class Asked:
    """Counts how often it was asked; answers when it may."""

    def __init__(self) -> None:
        self.count = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def __call__(self) -> int:
        self.count += 1
        await self.may_answer.wait()
        return self.count


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_an_answer_counts_for_its_seconds_only() -> None:
    clock, asked = Clock(), Asked()
    cache = AnswerCache[int](10, 8, clock)
    answers = []
    for clock.now in (0, 9.9, 10, 19.9, 20):
        answers.append(await cache.get(("a",), asked))
    assert answers == [1, 1, 2, 2, 3]


async def test_the_oldest_answer_goes_when_there_are_too_many() -> None:
    asked = Asked()
    cache = AnswerCache[int](10, 2, Clock())
    for key in "abc":
        await cache.get((key,), asked)
    assert len(cache) == 2
    assert await cache.get(("c",), asked) == 3
    assert await cache.get(("a",), asked) == 4


async def test_those_who_ask_at_once_share_one_request() -> None:
    asked = Asked()
    asked.may_answer.clear()
    cache = AnswerCache[int](10, 8, Clock())
    first, second = (asyncio.create_task(cache.get(("a",), asked)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()  # who goes away ends nothing for others
    await asyncio.sleep(0)
    asked.may_answer.set()
    assert await second == 1
    assert first.cancelled()


async def test_a_failure_is_not_remembered() -> None:
    async def fails() -> int:
        raise ApiUnavailable("no answer")

    cache = AnswerCache[int](10, 8, Clock())
    with pytest.raises(ApiUnavailable):
        await cache.get(("a",), fails)
    assert await cache.get(("a",), Asked()) == 1


class Everybody(Access):
    """Lets everybody see everything."""

    async def user(self, token: str) -> User:
        return User(token, {})

    async def visible(self, user: User, namespaces: object) -> frozenset[str]:
        return frozenset({NAMESPACE})


@pytest.mark.plugged
@pytest.mark.parametrize("path", ["/", f"/outputs/{NAMESPACE}/wide.html"])
async def test_a_document_is_made_once_in_a_thread_until_something_changes(path, monkeypatch):
    made: list[threading.Thread] = []

    def make(*_: object, **__: object) -> str:
        made.append(threading.current_thread())
        return "document"

    monkeypatch.setattr(pages.documents(), "statuses_document", make)
    monkeypatch.setattr(pages.documents(), "status_document", make)
    store, metrics = Store(), PagesMetrics(CollectorRegistry())
    store.put(stored(output()))
    server = PageServer(store, Everybody(FakeCluster()), metrics, lambda: "")
    async with serving(server.application(), "127.0.0.1", 0) as port, ClientSession() as session:

        async def ask() -> str:
            async with session.get(f"http://127.0.0.1:{port}{path}") as response:
                return await response.text()

        assert set(await asyncio.gather(*(ask() for _ in range(10)))) == {"document"}
        assert len(made) == 1
        assert made[0] is not threading.current_thread()
        store.put(stored(output()))
        await ask()
        assert len(made) == 2


def test_the_plug_in_has_what_pages_ask_of_it() -> None:
    asked = {name for name in vars(StatusDocuments) if not name.startswith("_")}
    assert asked | StatusDocuments.__annotations__.keys() <= set(dir(documents()))
