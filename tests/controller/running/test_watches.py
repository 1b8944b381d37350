"""kopf's watches in their thread: what they report of their end."""

import asyncio
import logging

import kopf
import pytest
from prometheus_client import CollectorRegistry
from support.scriptedapi import Answer, ScriptedApi, running_scripted_api

from snaploom_operator.operatormetrics import Metrics
from snaploom_operator.watch.watchedkinds import watched_kinds
from snaploom_operator.watch.watches import Watches

DEADLINE = 30.0


def watches_of(api: ScriptedApi) -> Watches:
    async def login() -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(server=api.url)

    return Watches(
        lambda: watched_kinds((), is_namespaced=False),
        (),
        lambda *_: None,
        login,
        Metrics(CollectorRegistry()),
    )


async def until_asked(api: ScriptedApi, count: int) -> None:
    async with asyncio.timeout(DEADLINE):
        while len(api.asked) < count:
            await asyncio.sleep(0.01)


async def test_stop_while_the_server_is_asked_for_its_kinds_logs_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running_scripted_api() as api:
        api.answers(Answer(lines=(b"{",), is_silent=True))
        watching = asyncio.create_task(watches_of(api).run())
        await until_asked(api, 2)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR] == []
