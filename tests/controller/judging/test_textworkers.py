"""Texts are judged by processes that end when they take too long, in turns by namespace."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from support.operator.reviews import VerdictsInProcess

from snaploom.policy.sqltext import SqlFacts, SqlFault, SqlForm, SqlText
from snaploom.policy.verdicts import (
    REGEXES_TOO_LONG,
    RegexList,
    RegexVerdict,
    judge,
    too_large,
    too_long,
)
from snaploom_operator import verdicts as textworkers
from snaploom_operator.errors import TextNotJudged
from snaploom_operator.verdicts import (
    WORKER,
    RecordingJudge,
    TextVerdicts,
    TextWorkers,
    VerdictCache,
)

SLOW = """
import os, sys, time
import snaploom.policy.sql
from snaploom.policy.verdicts import judge
from snaploom.policy.verdicts import read_text, verdict_line
print(flush=True)
for line in sys.stdin.buffer:
    text = read_text(line)
    if "slow" in str(text):
        time.sleep(3600)
    if "fatal" in str(text):
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
) -> AsyncIterator[TextWorkers]:
    made = TextWorkers(program, seconds=seconds)
    try:
        yield made
    finally:
        await made.close()


@asynccontextmanager
async def verdicts(name: str) -> AsyncIterator[TextVerdicts]:
    if name == "in process":
        yield VerdictsInProcess()
        return
    async with workers() as made:
        yield made


@pytest.mark.parametrize("name", ["in process", "by workers"])
async def test_verdicts_are_those_of_the_gate(name: str) -> None:
    queries = [SqlText("SELECT a, b AS c FROM t", SqlForm.QUERY)]
    regexes = [RegexList(("a", "(b)(ö)", "(?=c)")), RegexList((r"\w{1,255}",) * 20)]
    texts = [*map(expression, TEXTS), *queries, *regexes]
    async with verdicts(name) as made:
        assert [made.known(text) for text in texts] == [None] * len(texts)
        found = await made.judged("team", texts)
        assert found == {text: judge(text) for text in texts}
        assert [made.known(text) for text in texts] == [judge(text) for text in texts]


@pytest.mark.parametrize("name", ["in process", "by workers"])
async def test_missing_verdicts_are_asked_for(name: str) -> None:
    async with verdicts(name) as made:
        asked = RecordingJudge(made)
        asked(expression("a"))
        assert asked.missing == {expression("a")}
        await asked.fetch_missing("team")
        assert isinstance(asked(expression("a")), SqlFacts)
        assert asked.missing == set()


@pytest.mark.slow
async def test_a_text_that_takes_too_long_loses_its_process_and_no_other() -> None:
    async with workers(0.5, (sys.executable, "-c", SLOW)) as made:
        found = await made.judged("team", [expression("slow"), expression("a")])
        assert found[expression("slow")] == too_long(expression("slow"))
        assert isinstance(found[expression("a")], SqlFacts)


@pytest.mark.slow
async def test_regexes_that_take_too_long_are_a_fault_of_all() -> None:
    slow, sound = RegexList(("a", "slow")), RegexList(("a",))
    async with workers(0.5, (sys.executable, "-c", SLOW)) as made:
        found = await made.judged("team", [slow, sound])
    assert found == {slow: RegexVerdict((), REGEXES_TOO_LONG), sound: RegexVerdict((0,))}


@pytest.mark.slow
async def test_a_text_that_takes_too_much_of_the_processor_ends_by_itself() -> None:
    program = (
        sys.executable, "-c",
        "from snaploom.policy import verdicts as worker\n"
        "worker.MOST_SECONDS = 0.2\n"
        "judge = worker.judge\n"
        "def forever(text):\n"
        "    while 'slow' in str(text):\n"
        "        pass\n"
        "    return judge(text)\n"
        "worker.judge = forever\n"
        "worker.main()\n",
    )  # fmt: skip
    async with workers(600, program) as made:
        found = await made.judged("team", [expression("slow"), expression("a")])
        slow = found[expression("slow")]
        assert isinstance(slow, SqlFault)
        assert "takes more than 0.2 s" in slow.message
        assert isinstance(found[expression("a")], SqlFacts)


@pytest.mark.slow
async def test_a_text_that_ends_its_process_twice_is_a_fault() -> None:
    async with workers(program=(sys.executable, "-c", SLOW)) as made:
        found = await made.judged("team", [expression("fatal"), expression("a")])
        assert found[expression("fatal")] == too_large(expression("fatal"))
        assert isinstance(found[expression("a")], SqlFacts)


@pytest.mark.slow
async def test_slow_texts_of_one_namespace_delay_no_other() -> None:
    async with workers(program=(sys.executable, "-c", SLOW)) as made:
        slow = [expression(f"slow{number}") for number in range(50)]
        hostile = asyncio.create_task(made.judged("hostile", slow))
        await asyncio.sleep(0)
        async with asyncio.timeout(30):
            assert await made.judged("team", [expression("a")])
        hostile.cancel()
        await asyncio.gather(hostile, return_exceptions=True)


@pytest.mark.slow
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
async def test_a_process_that_cannot_start_is_reported_once_for_all_texts(program, monkeypatch):
    monkeypatch.setattr(textworkers, "START_SECONDS", 0.5)
    async with workers(program=program) as made, asyncio.timeout(10):
        with pytest.raises(TextNotJudged, match="a worker"):
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
        assert [type(each) for each in found] == [TextNotJudged] * 3
        assert not made._tasks
        assert not made._idle
        with pytest.raises(TextNotJudged, match="stopping"):
            await made.judged("a", slow)


def texts(prefix: str, count: int) -> list[SqlText]:
    return [SqlText(f"{prefix}{number}", SqlForm.EXPRESSION) for number in range(count)]


def keep(kept: VerdictCache, namespace: str, several: list[SqlText]) -> None:
    for text in several:
        kept.put(namespace, text, judge(text))


def kept_of(kept: VerdictCache, several: list[SqlText]) -> list[SqlText]:
    return [text for text in several if kept.get(text) is not None]


def test_what_is_kept_is_given_again() -> None:
    kept, (text,) = VerdictCache(), texts("a", 1)
    assert kept.get(text) is None
    keep(kept, "team", [text])
    assert kept.get(text) == judge(text)


def test_the_oldest_of_a_namespace_goes_first() -> None:
    kept, several = VerdictCache(largest=3_000), texts("a", 50)
    keep(kept, "team", several)
    left = kept_of(kept, several)
    assert 0 < len(left) < 50
    assert left == several[-len(left) :]


def test_a_namespace_with_many_evicts_only_its_own() -> None:
    kept, few, many = VerdictCache(largest=5_000), texts("a", 3), texts("b", 100)
    keep(kept, "team", few)
    keep(kept, "other", many)
    assert kept_of(kept, few) == few
    assert kept_of(kept, many)


def test_names_count_and_not_only_the_text() -> None:
    wide = SqlText("f(" + ",".join(f"a{n}" for n in range(200)) + ")", SqlForm.EXPRESSION)
    kept = VerdictCache(largest=10_000)
    keep(kept, "team", [wide])
    assert len(wide.text) < 1_000
    assert kept.get(wide) is None


def test_patterns_of_a_list_count_each() -> None:
    wide, few = RegexList(("a",) * 500), RegexList(("a",))
    kept = VerdictCache(largest=10_000)
    for regexes in (wide, few):
        kept.put("team", regexes, judge(regexes))
    assert kept.get(wide) is None
    assert kept.get(few) == judge(few)


def test_a_text_that_two_namespaces_have_is_kept_once() -> None:
    kept, several = VerdictCache(largest=3_000), texts("a", 2)
    for namespace in ("first", "second"):
        keep(kept, namespace, several)
    keep(kept, "first", texts("b", 50))
    assert sum(kept._sizes.values()) <= 3_000
