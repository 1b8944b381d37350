"""Behind a proxy that spoils calls, or cuts the operator off, stories end as they do without it.

A story runs once to find the operator's calls, then again with a fault at each of them, or with
the death of the operator behind each write. Usually only a sample is run, the same each time;
`make prove-operator` runs them all.
"""

import asyncio
from collections.abc import Awaitable, Sequence

import pytest
from support.operator.faultyproxy import FAULTS_OF
from support.operator.proxiedstage import run_through_proxy
from support.operator.stories import STORIES
from support.runner.proofscope import sampled, show_progress

AT_ONCE = 4
"""Stories that run at once: they mostly wait."""
each_story = pytest.mark.parametrize("name", STORIES)


@pytest.fixture(scope="module")
def known():
    """Stories that ran undisturbed: their ends, and their stages."""
    return {}


@pytest.fixture
def play(spark_plane, tmp_path, known, impatient):
    """A function that runs a story; undisturbed ones once."""

    async def run_story(name, **options):
        return await run_through_proxy(spark_plane.kubeconfig, tmp_path, STORIES[name], **options)

    async def run_undisturbed(name):
        if name not in known:
            known[name] = await run_story(name)
        return known[name]

    run_story.undisturbed = run_undisturbed
    return run_story


@each_story
async def test_neither_death_nor_fault_changes_the_end(name, play):
    wanted, stage = await play.undisturbed(name)
    assert wanted.runs == wanted.names == STORIES[name].runs
    calls = dict.fromkeys(stage.proxy.calls)
    if name != "publish":  # of what all stories begin with it is shown there
        _, simplest = await play.undisturbed("publish")
        calls = {call: None for call in calls if call not in set(simplest.proxy.calls)}
    points = [(call, fault) for call in calls for fault in FAULTS_OF[call.verb]]
    chosen = sampled(points, 8 if name == "publish" else 2)
    deaths = sampled(range(1, stage.proxy.writes + 1), 1)
    died = spoilt = 0

    async def with_death(number):
        nonlocal died
        ended, stage = await play(name, dies_behind=number, wanted=wanted)
        died += stage.proxy.has_died
        return f"death behind {number}: {ended}" if ended != wanted else ""

    async def with_fault(spoilt_call, fault):
        nonlocal spoilt
        ended, stage = await play(
            name, plan=lambda call: fault if call == spoilt_call else None, wanted=wanted
        )
        spoilt += spoilt_call in stage.proxy.spoilt
        return f"{fault} at {spoilt_call}: {ended}" if ended != wanted else ""

    answers = [
        *(with_death(number) for number in deaths),
        *(with_fault(*point) for point in chosen),
    ]
    assert "\n".join(await all_of(name, answers)) == ""
    # Calls depend on what is seen when: some are made in one run, and not in the next.
    assert spoilt * 2 >= len(chosen) or name != "publish"
    assert died * 2 >= len(deaths)


async def all_of(name: str, answers: Sequence[Awaitable[str]]) -> list[str]:
    """Answers that are not empty, of coroutines of which a few go on at once."""
    places = asyncio.Semaphore(AT_ONCE)
    failures: list[str] = []

    async def answered(answer: Awaitable[str]) -> None:
        async with places:
            try:
                failures.append(await answer)
            except AssertionError as error:
                failures.append(str(error))
        show_progress(f"{name}: ran {len(failures)} of {len(answers)} {failures[-1]}")

    await asyncio.gather(*map(answered, answers))
    return [failure for failure in failures if failure]
