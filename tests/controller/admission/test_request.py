"""Reading reviews: strict about what is read, never a fault of ours, and quick where it must be."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.declared.declarations import Raw, files, model, output, spoilt
from support.operator.reviews import (
    VerdictsInProcess,
    a_request,
    a_review,
    answered,
    response,
    store_of,
    stored,
)
from support.runner.proofscope import within_work

from snaploom_operator.admission.judge import Judge, Judgement, Outcome, SharedThreads
from snaploom_operator.admission.request import (
    Answer,
    Refusal,
    clipped_warnings,
    parse_review,
    passes_unread,
    refusal_text,
)
from snaploom_operator.errors import ReviewUnreadable
from snaploom_operator.settings import AdmissionSettings

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)
SOUND = st.sampled_from([*model(), {}])
OUR_USER = "system:serviceaccount:snaploom-system:snaploom"


@st.composite
def spoilt_objects(draw: st.DrawFn) -> Any:
    """A sound object with anything at all somewhere inside."""
    raw = json.loads(json.dumps(draw(SOUND)))
    place, above = raw, None
    while isinstance(place, dict | list) and place and draw(st.booleans()):
        keys = list(place) if isinstance(place, dict) else range(len(place))
        above = (place, draw(st.sampled_from(list(keys))))
        place = place[above[1]]
    if above is None:
        return draw(ANYTHING)
    above[0][above[1]] = draw(ANYTHING)
    return raw


@pytest.fixture(scope="module")
def judge() -> Judge:
    with ThreadPoolExecutor(1) as threads:
        yield Judge(store_of(model()), AdmissionSettings(), threads, VerdictsInProcess())  # type: ignore[misc]


def judged(judge: Judge, body: bytes) -> Judgement | None:
    try:
        return asyncio.run(judge.judge(body))
    except ReviewUnreadable:
        return None


@given(st.binary() | ANYTHING.map(lambda value: json.dumps(value).encode()))
def test_any_body_is_judged_or_is_no_review(judge: Judge, body: bytes) -> None:
    assert judged(judge, body) is None


@given(spoilt_objects(), st.none() | spoilt_objects())
def test_any_object_gets_an_answer(judge: Judge, new: Any, old: Any) -> None:
    about = {"group": "snaploom.io", "version": "v1alpha1", "kind": "OutputDataset"}
    request = {"uid": "u", "kind": about, "operation": "UPDATE", "object": new, "oldObject": old}
    review = a_review({}) | {"request": request}
    found = judged(judge, json.dumps(review).encode())
    is_readable = isinstance(new, dict | None) and isinstance(old, dict | None)
    assert (found is not None) or not is_readable or not _is_json(new) or not _is_json(old)
    if found is not None:
        json.dumps(found.document, allow_nan=False).encode()


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return "\\ud" not in json.dumps(value)


@pytest.mark.parametrize("unknown", ["resource", "requestKind", "options", "ofTomorrow"])
def test_what_is_not_read_is_passed_over(unknown: str) -> None:
    body = json.dumps(a_review(files("a"), **{unknown: {"a": [1]}})).encode()
    assert parse_review(body).name == "a"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"uid": None}, id="no uid"),
        pytest.param({"operation": "PATCH"}, id="operation"),
        pytest.param({"object": []}, id="object"),
        pytest.param({"kind": "DataSource"}, id="kind"),
    ],
)
def test_what_is_read_must_be_right(change: Raw) -> None:
    with pytest.raises(ReviewUnreadable):
        parse_review(json.dumps(a_review(files("a"), **change)).encode())


WRONG = spoilt(stored(output()), "spec.dataModel.maxDepth", "many")
DELETED = spoilt(WRONG, "metadata.deletionTimestamp", "2026-01-01T00:00:00Z")
FOREIGN = {"kind": {"group": "apps", "version": "v1", "kind": "Deployment"}}


@pytest.mark.parametrize(
    ("new", "old", "changes"),
    [
        pytest.param(WRONG, WRONG, {"subResource": "status"}, id="status"),
        pytest.param(DELETED, WRONG, {}, id="being deleted"),
        pytest.param(spoilt(DELETED, "metadata.finalizers", []), DELETED, {}, id="finalizer"),
        pytest.param(spoilt(WRONG, "metadata.labels", {"a": "b"}), WRONG, {}, id="metadata"),
        pytest.param(WRONG, None, {"userInfo": {"username": OUR_USER}}, id="our own account"),
        pytest.param(WRONG, None, FOREIGN, id="another's kind"),
        pytest.param(WRONG, None, {"operation": "CONNECT"}, id="connect"),
    ],
)
def test_what_must_pass_passes_however_wrong_it_is(judge, new, old, changes):
    assert passes_unread(a_request(new, old, **changes), {OUR_USER})
    settings = AdmissionSettings(passed_users=(OUR_USER,))
    ours = Judge(store_of([]), settings, ThreadPoolExecutor(1), VerdictsInProcess())
    found = judged(ours, json.dumps(a_review(new, old, **changes)).encode())
    assert (found.outcome, found.answer.warnings) == (Outcome.PASSED, ())


@pytest.mark.parametrize(
    ("new", "old"),
    [
        pytest.param(WRONG, None, id="created"),
        pytest.param(WRONG, stored(output()), id="changed"),
        pytest.param(None, WRONG, id="deleted"),
    ],
)
def test_what_is_to_be_judged_does_not_pass_unread(new: Raw | None, old: Raw | None) -> None:
    assert not passes_unread(a_request(new, old), {OUR_USER})


def test_a_dry_run_is_judged_as_any_other(judge: Judge) -> None:
    bodies = [json.dumps(a_review(output("new"), dryRun=dry)).encode() for dry in (True, False)]
    first, second = (judged(judge, body) for body in bodies)
    assert first.document == second.document


@given(st.lists(st.text(max_size=400), max_size=60))
def test_warnings_are_what_the_api_server_takes(warnings: list[str]) -> None:
    clipped = clipped_warnings(warnings)
    assert all(len(warning) <= 256 and warning.isprintable() for warning in clipped)
    assert sum(map(len, clipped)) <= 4096
    assert bool(clipped) == bool(warnings)


def test_of_very_many_warnings_the_first_are_written_and_the_others_counted() -> None:
    warnings = [f"{number} " + "x" * 200 for number in range(100_000)]
    with within_work(seconds=0.5):
        clipped = clipped_warnings(warnings)
    assert clipped[:-1] == tuple(warnings[: len(clipped) - 1])
    assert clipped[-1] == f"and {100_000 - len(clipped) + 1} more warnings"


def test_a_long_refusal_counts_what_is_left_out() -> None:
    others = [{"dataSource": "customer", "fieldName": f"f{n}"} for n in range(400)]
    answer = answered(output(**{"dataModel.otherDataSources": others}))
    assert len(answer.refusal.findings) == 400
    text = refusal_text(answer.refusal)
    assert len(text) < 20_000
    assert text.splitlines()[-1].startswith("and ")
    request = a_request(output())
    assert len(response(request, answer)["status"]["details"]["causes"]) == 50


def test_an_answer_carries_the_identity_of_its_request() -> None:
    request = a_request(files("a"), uid="7")
    assert response(request, Answer())["uid"] == "7"
    assert response(request, Answer(Refusal(())))["allowed"] is False


class Work:
    """Work that goes on until it may end."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.begun = 0

    def __call__(self) -> str:
        self.begun += 1
        assert self.may_end.wait(60)
        return "done"


@pytest.fixture
def work() -> Iterator[Work]:
    made = Work()
    yield made
    made.may_end.set()


@pytest.fixture
def threads() -> Iterator[SharedThreads]:
    with ThreadPoolExecutor(4) as pool:
        yield SharedThreads(pool, 2)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.001)


async def test_a_name_has_its_share_and_others_have_theirs(threads, work):
    waiting = [asyncio.create_task(threads.run("bad", work)) for _ in range(10)]
    await until(lambda: work.begun == 2)
    assert await threads.run("good", lambda: "answered") == "answered"
    assert work.begun == 2
    work.may_end.set()
    assert await asyncio.gather(*waiting) == ["done"] * 10


async def test_abandoned_work_keeps_its_share(threads: SharedThreads, work: Work) -> None:
    waiting = [asyncio.create_task(threads.run("bad", work)) for _ in range(3)]
    await until(lambda: work.begun == 2)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    late = asyncio.create_task(threads.run("bad", lambda: "late"))
    assert await threads.run("good", lambda: "answered") == "answered"
    assert not late.done()
    work.may_end.set()
    assert await late == "late"


async def test_what_work_raises_is_raised_and_ends_its_share(threads: SharedThreads) -> None:
    for _ in range(5):
        with pytest.raises(ZeroDivisionError):
            await threads.run("team", lambda: 1 // 0)
    await until(lambda: not threads._shares)
