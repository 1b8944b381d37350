"""SQL is judged in the background; nothing that was found meanwhile is kept."""

import asyncio
import threading
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from support.declared.declarations import Raw, complex_, files, simple
from support.operator.reviews import VerdictsInProcess, key, newer, stored

from snaploom.models.common import EpochNanos
from snaploom.models.findings import Finding, errors_of
from snaploom.policy.verdicts import JudgedText, Verdict
from snaploom_operator.decision import ObservedResource
from snaploom_operator.errors import TextNotJudged
from snaploom_operator.gather import gatherer as gather
from snaploom_operator.gather.gatherer import Gatherer, Unjudged
from snaploom_operator.objects import Ref
from snaploom_operator.store.entries import Entry
from snaploom_operator.store.store import Store
from snaploom_operator.verdicts import TextVerdicts

QUERY = "SELECT a AS x FROM c"
TABLE = stored(files("c"))
FIRST, SECOND = stored(simple("first", QUERY, "c")), stored(simple("second", QUERY, "c"))
OVER_BOTH = stored(
    complex_(
        "both", "SELECT c0.x, {{ SNAPSHOT | UNIX_SECONDS }} AS at FROM c0, c1", "first", "second",
        snapshotQuery="SELECT x AS interval_start, x AS interval_end FROM c0",
    )
)  # fmt: skip


class Failing(VerdictsInProcess):
    """Judges from the second time on."""

    attempts = 0

    async def judged(
        self, namespace: str, texts: Iterable[JudgedText]
    ) -> Mapping[JudgedText, Verdict]:
        self.attempts += 1
        if self.attempts == 1:
            raise TextNotJudged("no process")
        return await super().judged(namespace, texts)


class Forgetful(VerdictsInProcess):
    """Keeps nothing of what it has judged."""

    def known(self, text: JudgedText) -> Verdict | None:
        return None


class Looks:
    """Looks at resources of a namespace until they are judged."""

    def __init__(self, raws: Iterable[Raw], verdicts: TextVerdicts) -> None:
        self.store = Store()
        for raw in raws:
            self.store.put(raw)
        self.woken: asyncio.Queue[Ref] = asyncio.Queue()
        self.gatherer = Gatherer(self.store, lambda: EpochNanos(0), verdicts, self.woken.put_nowait)

    async def until_judged(self, raw: Raw) -> tuple[str, ...]:
        async with asyncio.timeout(30):
            while True:
                found = await self.gatherer.observe(key(raw))
                if not isinstance(found, Unjudged):
                    assert isinstance(found, ObservedResource)
                    return (*(e.message for e in errors_of(found.findings)), *found.faulty)
                await self.woken.get()


async def test_resources_with_the_same_sql_are_all_judged_right() -> None:
    looks = Looks([TABLE, FIRST, SECOND, OVER_BOTH], VerdictsInProcess())
    for raw in (OVER_BOTH, SECOND, FIRST):
        assert await looks.until_judged(raw) == ()


async def test_verdicts_that_are_not_kept_are_asked_once_a_resource() -> None:
    verdicts = Forgetful()
    looks = Looks([TABLE, FIRST], verdicts)
    assert await looks.until_judged(FIRST) == ()
    assert len(verdicts.asked) == 1


async def test_a_failure_to_judge_is_raised_once_and_tried_again() -> None:
    looks = Looks([TABLE, FIRST], Failing())
    with pytest.raises(TextNotJudged):
        await looks.until_judged(FIRST)
    assert await looks.until_judged(FIRST) == ()


async def test_a_pass_while_sql_is_judged_asks_for_nothing_more() -> None:
    verdicts = VerdictsInProcess()
    looks = Looks([TABLE, FIRST], verdicts)
    for _ in range(3):
        assert isinstance(await looks.gatherer.observe(key(FIRST)), Unjudged)
    await looks.woken.get()
    assert len(verdicts.asked) == 1


async def test_a_resource_that_changes_while_its_sql_is_judged_is_judged_as_it_is() -> None:
    looks = Looks([TABLE, FIRST], VerdictsInProcess())
    assert isinstance(await looks.gatherer.observe(key(FIRST)), Unjudged)
    wrong = stored(simple("first", "SELECT a AS x FROM nowhere", "c"))
    looks.store.put(newer(wrong, generation=2))
    assert "nowhere" in str(await looks.until_judged(FIRST))


async def test_nothing_is_judged_for_a_resource_that_is_gone() -> None:
    looks = Looks([TABLE, FIRST], VerdictsInProcess())
    await looks.gatherer.observe(key(FIRST))
    looks.store.remove(key(FIRST))
    assert await looks.gatherer.observe(key(FIRST)) is None
    await looks.gatherer.close()
    assert looks.woken.empty()


async def test_a_resource_that_always_changes_gives_its_turn_to_others(monkeypatch):
    looks = Looks([TABLE], VerdictsInProcess())
    needed = looks.store.needed

    def needed_while_it_changes(ref: Ref) -> tuple[Entry, ...]:
        looks.store.put(newer(TABLE, generation=2))
        return needed(ref)

    monkeypatch.setattr(looks.store, "needed", needed_while_it_changes)
    assert isinstance(await looks.gatherer.observe(key(TABLE)), Unjudged)
    assert looks.woken.get_nowait() == key(TABLE)


@pytest.mark.parametrize("small", [0, gather.SMALL])
async def test_only_a_small_declaration_is_judged_in_the_loop(monkeypatch, small):
    found: list[threading.Thread] = []

    def own_findings(*_: Any, **__: Any) -> tuple[Finding, ...]:
        found.append(threading.current_thread())
        return ()

    monkeypatch.setattr(gather, "own_findings", own_findings)
    monkeypatch.setattr(gather, "SMALL", small)
    assert await Looks([TABLE, FIRST], VerdictsInProcess()).until_judged(FIRST) == ()
    assert [each is threading.main_thread() for each in found] == [small > 0] * 2
