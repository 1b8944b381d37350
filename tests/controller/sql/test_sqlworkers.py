"""Texts of SQL are judged by processes that end when they take too long, in turns by namespace."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from support.sqlverdicts import VerdictsInProcess

from snaploom.planning.sqlgate.facts import SqlFacts, SqlForm, SqlText, judge
from snaploom.planning.sqlgate.worker import TOO_LONG
from snaploom_operator import sqlworkers
from snaploom_operator.errors import SqlNotJudged
from snaploom_operator.sqlverdicts import RecordingJudge, SqlVerdicts
from snaploom_operator.sqlworkers import TOO_LARGE, WORKER, SqlWorkers

SLOW = """
import os, sys, time
from snaploom.planning.sqlgate.facts import judge
from snaploom.planning.sqlgate.wire import read_text, verdict_line
print(flush=True)
for line in sys.stdin.buffer:
    text = read_text(line)
    if text.text.startswith("slow"):
        time.sleep(3600)
    if text.text.startswith("fatal"):
        os._exit(9)
    sys.stdout.buffer.write(verdict_line(judge(text)))
    sys.stdout.buffer.flush()
"""
"""A worker that two words stop, as a parser might be stopped by what nobody thought of."""
TEXTS = ("a + 1", "struct(struct(", "concat(a, 'x''y') -- c", "map(x)", "größe", "count(*) > 0")


def expression(text: str) -> SqlText:
    return SqlText(text, SqlForm.EXPRESSION)


@asynccontextmanager
async def workers(
    seconds: float = 30.0, program: tuple[str, ...] = WORKER
) -> AsyncIterator[SqlWorkers]:
    made = SqlWorkers(program, seconds=seconds)
    try:
        yield made
    finally:
        await made.close()


@asynccontextmanager
async def verdicts(name: str) -> AsyncIterator[SqlVerdicts]:
    if name == "in process":
        yield VerdictsInProcess()
        return
    async with workers() as made:
        yield made


@pytest.mark.parametrize("name", ["in process", "by workers"])
async def test_verdicts_are_those_of_the_gate(name: str) -> None:
    texts = [*map(expression, TEXTS), SqlText("SELECT a, b AS c FROM t", SqlForm.QUERY)]
    async with verdicts(name) as made:
        assert [made.known(text) for text in texts] == [None] * len(texts)
        found = await made.judged("team", texts)
        assert found == {text: judge(text) for text in texts}
        assert [made.known(text) for text in texts] == [judge(text) for text in texts]


@pytest.mark.parametrize("name", ["in process", "by workers"])
async def test_what_is_asked_for_and_missing_is_learnt(name: str) -> None:
    async with verdicts(name) as made:
        asked = RecordingJudge(made)
        asked(expression("a"))
        assert asked.missing == {expression("a")}
        await asked.fetch_missing("team")
        assert isinstance(asked(expression("a")), SqlFacts)
        assert asked.missing == set()


async def test_a_text_that_takes_too_long_loses_its_process_and_no_other() -> None:
    async with workers(0.5, (sys.executable, "-c", SLOW)) as made:
        found = await made.judged("team", [expression("slow"), expression("a")])
        assert found[expression("slow")] == TOO_LONG
        assert isinstance(found[expression("a")], SqlFacts)


@pytest.mark.slow
async def test_a_text_that_takes_too_much_of_the_processor_ends_by_itself() -> None:
    program = (
        sys.executable, "-c",
        "from snaploom.planning.sqlgate import worker\n"
        "worker.MOST_SECONDS = 0.2\n"
        "judge = worker.judge\n"
        "def forever(text):\n"
        "    while text.text == 'slow':\n"
        "        pass\n"
        "    return judge(text)\n"
        "worker.judge = forever\n"
        "worker.main()\n",
    )  # fmt: skip
    async with workers(600, program) as made:
        found = await made.judged("team", [expression("slow"), expression("a")])
        assert found[expression("slow")] == TOO_LONG
        assert isinstance(found[expression("a")], SqlFacts)


async def test_a_text_that_ends_its_process_twice_is_a_fault() -> None:
    async with workers(program=(sys.executable, "-c", SLOW)) as made:
        found = await made.judged("team", [expression("fatal"), expression("a")])
        assert found[expression("fatal")] == TOO_LARGE
        assert isinstance(found[expression("a")], SqlFacts)


async def test_slow_texts_of_one_namespace_delay_no_other() -> None:
    async with workers(program=(sys.executable, "-c", SLOW)) as made:
        slow = [expression(f"slow{number}") for number in range(50)]
        hostile = asyncio.create_task(made.judged("hostile", slow))
        await asyncio.sleep(0)
        async with asyncio.timeout(30):
            assert await made.judged("team", [expression("a")])
        hostile.cancel()
        await asyncio.gather(hostile, return_exceptions=True)


async def test_texts_that_nobody_waits_for_are_not_judged() -> None:
    async with workers(0.5, (sys.executable, "-c", SLOW)) as made:
        slow = [expression(f"slow{number}") for number in range(1000)]
        waiting = asyncio.create_task(made.judged("team", slow))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        async with asyncio.timeout(60):
            assert await made.judged("team", [expression("a")])


async def test_no_process_is_left_behind() -> None:
    async with workers() as made:
        await made.judged("team", [expression("a")])
        (process,) = made._idle
    assert process.returncode is not None


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(("/nowhere/python",), id="is-not-there"),
        pytest.param((sys.executable, "-c", ""), id="ends"),
        pytest.param((sys.executable, "-c", "import time; time.sleep(60)"), id="hangs"),
    ],
)
async def test_a_process_that_cannot_begin_is_told_once_for_all_texts(
    program: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlworkers, "START_SECONDS", 0.5)
    async with workers(program=program) as made, asyncio.timeout(10):
        with pytest.raises(SqlNotJudged, match="a SQL worker"):
            await made.judged("team", [expression(f"a{number}") for number in range(50)])
        assert await made.judged("other", []) == {}
        assert made._next() is None


async def test_closing_ends_every_wait_and_starts_nothing() -> None:
    async with workers(program=(sys.executable, "-c", SLOW)) as made:
        slow = [expression(f"slow{number}") for number in range(5)]
        waiting = [asyncio.create_task(made.judged(team, slow)) for team in ("a", "b", "c")]
        while len(made._tasks) < 2:
            await asyncio.sleep(0)
        await made.close()
        async with asyncio.timeout(30):
            found = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(each) for each in found] == [SqlNotJudged] * 3
        assert not made._tasks
        assert not made._idle
        with pytest.raises(SqlNotJudged, match="stopping"):
            await made.judged("a", slow)
