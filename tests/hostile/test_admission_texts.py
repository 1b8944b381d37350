"""Texts that are hard to judge stop neither webhook nor operator, and delay no other namespace."""

import asyncio
import json
import ssl
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hostile.rawhttp import certificate_of, raw_connection, request
from support.declared.declarations import Raw, document, files
from support.hostile.tpchqueries import DATABASE, OTHERS, SPARK_FIELDS, SQL_FIELDS
from support.operator.fakecluster import FakeCluster
from support.operator.reviews import a_review, store_of, stored
from support.operator.webhooks import HOST, install, serving_webhook, settings_for
from support.servers.certificates import Authority

from snaploom.models.common import EpochNanos
from snaploom.policy.verdicts import JudgedText, Verdict
from snaploom_operator.admission.judge import MOST_OF_A_NAMESPACE, Judge, Judgement, Outcome
from snaploom_operator.decision import ObservedResource
from snaploom_operator.errors import TooManyReviews
from snaploom_operator.gather.gatherer import Gatherer, Unjudged
from snaploom_operator.objects import ref_of
from snaploom_operator.serve import http
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


async def test_no_regex_is_compiled_where_reviews_are_answered(monkeypatch):
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


async def test_the_operator_judges_nothing_in_its_own_process(monkeypatch):
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


# Certificates that rotate under load: no review fails while the next one is taken up.


ROTATIONS = 5
ASKERS = 4


def renewed(folder: Path, authority: Authority, number: int) -> None:
    """As the kubelet does it: new files in a folder of their own, then one link is turned."""
    install(authority.issue(HOST, f"webhook-{number}"), folder / f"..{number}")
    link = folder / "..next"
    link.symlink_to(f"..{number}")
    link.replace(folder / "..data")


async def test_no_review_fails_while_certificates_rotate(tmp_path, monkeypatch):
    monkeypatch.setattr(http, "RELOAD_SECONDS", 0.02)
    authority = Authority(tmp_path, "authority")
    folder = tmp_path / "certificates"
    folder.mkdir()
    renewed(folder, authority, 0)
    for name in (http.CERTIFICATE, http.KEY):
        (folder / name).symlink_to(f"..data/{name}")
    trusted = ssl.create_default_context(cafile=authority.certificate)
    failures: list[str] = []
    served: set[bytes] = set()
    done = asyncio.Event()

    body = json.dumps(a_review(files("customer"))).encode()
    sent = request(body, f"Content-Length: {len(body)}", "Connection: close")

    async def ask(port: int) -> None:
        while not done.is_set():
            try:
                async with raw_connection(HOST, port, trusted) as connection:
                    await connection.send(sent)
                    answer = await connection.reader.read()
                    served.add(certificate_of(connection))
            except (OSError, ssl.SSLError) as error:
                failures.append(repr(error))
            else:
                if b'"allowed": true' not in answer:
                    failures.append(answer.decode(errors="replace"))

    async def until_served(number: int) -> None:
        while len(served) < number:
            await asyncio.sleep(0.01)

    webhook = serving_webhook(FakeCluster(namespaces=["team"]), settings_for(folder))
    async with webhook as ports, asyncio.TaskGroup() as group:
        for _ in range(ASKERS):
            group.create_task(ask(ports.review))
        async with asyncio.timeout(60):
            for number in range(1, ROTATIONS + 1):
                await until_served(number)
                renewed(folder, authority, number)
            await until_served(ROTATIONS + 1)
        done.set()
    assert failures == []
    assert len(served) == ROTATIONS + 1
