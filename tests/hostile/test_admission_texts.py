"""Texts that are hard to judge stop neither webhook nor operator, and delay no other namespace."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import pytest
from support.declared.declarations import Raw, document
from support.hostile.tpchqueries import DATABASE, OTHERS, SPARK_FIELDS, SQL_FIELDS
from support.operator.reviews import a_review, store_of, stored

from snaploom.models.common import EpochNanos
from snaploom.policy.verdicts import JudgedText, Verdict
from snaploom_operator.admission.judge import MOST_OF_A_NAMESPACE, Judge, Judgement, Outcome
from snaploom_operator.decision import ObservedResource
from snaploom_operator.errors import TooManyReviews
from snaploom_operator.gather.gatherer import Gatherer, Unjudged
from snaploom_operator.objects import ref_of
from snaploom_operator.settings import AdmissionSettings
from snaploom_operator.verdicts import TextVerdicts, TextWorkers

STUCK = """
import sys, time
from snaploom.policy.verdicts import judge
from snaploom.policy.verdicts import read_text, verdict_line
print(flush=True)
for line in sys.stdin.buffer:
    text = read_text(line)
    if "hang" in str(text):
        while True:
            pass
    sys.stdout.buffer.write(verdict_line(judge(text)))
    sys.stdout.buffer.flush()
"""
"""A worker whose parser never ends, as one might that nobody has bounded."""
SHORT = "struct(" * 24 + "1" + ")" * 24


class Never:
    """Verdicts that never come."""

    def known(self, text: JudgedText) -> Verdict | None:
        return None

    async def judged(
        self, namespace: str, texts: Iterable[JudgedText]
    ) -> Mapping[JudgedText, Verdict]:
        return await asyncio.get_running_loop().create_future()


def body(field: str, part: str, namespace: str = "team") -> bytes:
    return json.dumps(a_review(SQL_FIELDS[field][0](part), namespace=namespace)).encode()


def selecting(pattern: str, namespace: str = "team") -> bytes:
    spec = {"fieldSelectors": [{"coordinateIncludeRegex": pattern}], "metadata": {"k": "v"}}
    declared = document("MetadataApplicator", "m", spec)
    return json.dumps(a_review(declared, namespace=namespace)).encode()


@asynccontextmanager
async def judging(verdicts: TextVerdicts) -> AsyncIterator[Judge]:
    with ThreadPoolExecutor(2) as threads:
        yield Judge(store_of(OTHERS), AdmissionSettings(), threads, verdicts)


@asynccontextmanager
async def stuck_workers(seconds: float) -> AsyncIterator[TextWorkers]:
    made = TextWorkers((sys.executable, "-c", STUCK), seconds=seconds)
    try:
        yield made
    finally:
        await made.close()


@pytest.mark.parametrize("field", SQL_FIELDS)
async def test_a_text_that_never_ends_is_denied_in_every_field(field: str) -> None:
    part = "hang(1)" if field not in ("check", "index where", DATABASE) else "hang(1) > 0"
    async with stuck_workers(0.5) as workers, judging(workers) as judge:
        judgement = await judge.judge(body(field, part))
        assert judgement.outcome is Outcome.DENIED
        assert "takes more than" in json.dumps(judgement.document)


async def test_regexes_that_never_end_are_denied() -> None:
    async with stuck_workers(0.5) as workers, judging(workers) as judge:
        judgement = await judge.judge(selecting("hang"))
        assert judgement.outcome is Outcome.DENIED
        assert "take more than" in json.dumps(judgement.document)


async def test_no_regex_is_compiled_where_reviews_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("snaploom.policy.regexes._compiled", refuse)
    workers = TextWorkers()
    async with judging(workers) as judge:
        judgements = [
            await judge.judge(selecting(pattern)) for pattern in ("a|b", "(", r"\w{1000}")
        ]
    await workers.close()
    assert [each.outcome.value for each in judgements] == ["allowed", "denied", "denied"]


async def test_regexes_of_one_namespace_delay_no_other() -> None:
    async with stuck_workers(30) as workers, judging(workers) as judge:
        hostile = [
            asyncio.create_task(judge.judge(selecting(f"hang{n}", "bad")))
            for n in range(MOST_OF_A_NAMESPACE)
        ]
        async with asyncio.timeout(25):
            judgement = await judge.judge(selecting("a|b", "good"))
        assert judgement.outcome is Outcome.ALLOWED
        await cancelled(hostile)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("field", SQL_FIELDS)
async def test_short_nested_calls_are_judged_at_once_in_every_field(field: str) -> None:
    workers = TextWorkers()
    async with judging(workers) as judge:
        judgement = await judge.judge(body(field, SHORT))
        assert judgement.outcome in (Outcome.DENIED, Outcome.ALLOWED, Outcome.WARNED)
    await workers.close()


@pytest.mark.parametrize("field", SPARK_FIELDS)
async def test_a_crash_of_the_parser_is_a_denial_in_every_field(field: str) -> None:
    workers = TextWorkers()
    async with judging(workers) as judge:
        judgement = await judge.judge(body(field, "map(x)"))
        assert judgement.outcome is Outcome.DENIED
        assert "is not understood" in json.dumps(judgement.document)
    await workers.close()


async def test_a_namespace_that_sends_what_never_ends_delays_no_other() -> None:
    async with stuck_workers(30) as workers, judging(workers) as judge:
        hostile = [
            asyncio.create_task(judge.judge(body("transformer expression", f"hang({n})", "bad")))
            for n in range(MOST_OF_A_NAMESPACE)
        ]
        async with asyncio.timeout(25):
            judgement = await judge.judge(body("transformer expression", "value + 1", "good"))
        assert judgement.outcome is not Outcome.DENIED
        await cancelled(hostile)


async def test_one_namespace_does_not_take_all_reviews() -> None:
    async with judging(Never()) as judge:
        first = body("transformer expression", "value + 1", "bad")
        hostile = [asyncio.create_task(judge.judge(first)) for _ in range(MOST_OF_A_NAMESPACE)]
        while judge._under_way["bad"] < MOST_OF_A_NAMESPACE:
            await asyncio.sleep(0)
        with pytest.raises(TooManyReviews, match="bad"):
            await judge.judge(first)
        others = asyncio.create_task(judge.judge(body("check", "true", "good")))
        while not judge._under_way["good"]:
            await asyncio.sleep(0)
        await cancelled([*hostile, others])
        assert judge._under_way["bad"] == 0


async def test_the_operator_judges_nothing_in_its_own_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("snaploom.policy.sql.facts_of", refuse)
    monkeypatch.setattr("snaploom.policy.verdicts.size_of", refuse)
    raws: list[Raw] = [*OTHERS, SQL_FIELDS["transformer expression"][0]("value + 1")]
    store = store_of(raws)
    workers, woken = TextWorkers(), asyncio.Event()
    gatherer = Gatherer(store, lambda: EpochNanos(0), workers, lambda ref: woken.set())
    assert isinstance(await gatherer.observe(ref_of(stored(raws[-1]))), Unjudged)
    await woken.wait()
    observed = await gatherer.observe(ref_of(stored(raws[-1])))
    assert isinstance(observed, ObservedResource)
    assert [finding.message for finding in observed.findings if finding.is_error] == []
    await workers.close()


async def test_no_look_of_the_operator_waits_for_a_verdict() -> None:
    raws = [stored(SQL_FIELDS[field][0]("hang(1)")) for field in SQL_FIELDS]
    gatherer = Gatherer(store_of(raws), lambda: EpochNanos(0), Never(), lambda ref: None)
    looks = [gatherer.observe(ref_of(raw)) for raw in raws]
    async with asyncio.timeout(20):
        found = await asyncio.gather(*looks)
    await gatherer.close()
    assert [type(each) for each in found] == [Unjudged] * len(raws)


def refuse(text: object, **_: object) -> None:
    raise AssertionError(f"judged here: {text}")


async def cancelled(tasks: list[asyncio.Task[Judgement]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
