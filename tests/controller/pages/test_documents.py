"""Documents of the served pages: made once for all who ask, and beside the event loop."""

from __future__ import annotations

import asyncio
import threading

import pytest
from aiohttp import ClientSession
from prometheus_client import CollectorRegistry
from support.declared.declarations import output
from support.operator.controllerobjects import NAMESPACE, stored
from support.operator.fakecluster import FakeCluster

from snaploom_operator.serve import pages
from snaploom_operator.serve.http import serving
from snaploom_operator.serve.pages import Access, PageServer, PagesMetrics, User
from snaploom_operator.store.store import Store

pytestmark = pytest.mark.plugged


class Everybody(Access):
    """Lets everybody see everything."""

    async def user(self, token: str) -> User:
        return User(token, {})

    async def visible(self, user: User, namespaces: object) -> frozenset[str]:
        return frozenset({NAMESPACE})


@pytest.mark.parametrize("path", ["/", f"/outputs/{NAMESPACE}/wide.html"])
async def test_a_document_is_made_once_in_a_thread_until_something_changes(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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
