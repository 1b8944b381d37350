"""Behind a proxy that spoils calls, or cuts the operator off, stories end as they do without it.

A story is told once to find the operator's calls, then again with a fault at each of them, or with
the death of the operator behind each write. Usually a sample of that is told, the same in each run;
`make prove-operator` tells the whole.
"""

import asyncio
from collections.abc import Awaitable, Sequence

import pytest
from support.faultyproxy import FAULTS_OF
from support.proving import sampled, show_progress
from support.proxiedstage import told_through_proxy
from support.stories import STORIES

AT_ONCE = 4
"""Stories that are told at once: they mostly wait."""
each_story = pytest.mark.parametrize("name", STORIES)


@pytest.fixture(scope="module")
def known():
    """Stories that were told undisturbed: their ends, and their stages."""
    return {}


@pytest.fixture
def telling(spark_plane, tmp_path, known, impatient):
    """Tells a story; undisturbed ones once."""

    async def tell(name, **options):
        return await told_through_proxy(spark_plane.kubeconfig, tmp_path, STORIES[name], **options)

    async def tell_undisturbed(name):
        if name not in known:
            known[name] = await tell(name)
        return known[name]

    tell.undisturbed = tell_undisturbed
    return tell


@each_story
async def test_neither_death_nor_fault_changes_the_end(name, telling):
    wanted, stage = await telling.undisturbed(name)
    assert wanted.runs == wanted.names == STORIES[name].runs
    assert not [call for call in stage.proxy.calls if call.client == "kopf" and call.is_write]
    calls = dict.fromkeys(stage.proxy.calls)
    if name != "publish":  # of what all stories begin with it is shown there
        _, simplest = await telling.undisturbed("publish")
        calls = {call: None for call in calls if call not in set(simplest.proxy.calls)}
    points = [(call, fault) for call in calls for fault in FAULTS_OF[call.verb]]
    chosen = sampled(points, 12 if name == "publish" else 2)
    deaths = sampled(range(1, stage.proxy.writes + 1), 1)
    died = spoilt = 0

    async def with_death(number):
        nonlocal died
        ended, stage = await telling(name, dies_behind=number, wanted=wanted)
        died += stage.proxy.has_died
        return f"death behind {number}: {ended}" if ended != wanted else ""

    async def with_fault(spoilt_call, fault):
        nonlocal spoilt
        ended, stage = await telling(
            name, plan=lambda call: fault if call == spoilt_call else None, wanted=wanted
        )
        spoilt += spoilt_call in stage.proxy.spoilt
        return f"{fault} at {spoilt_call}: {ended}" if ended != wanted else ""

    told = [*(with_death(number) for number in deaths), *(with_fault(*point) for point in chosen)]
    assert "\n".join(await all_of(name, told)) == ""
    # Calls depend on what is seen when: some are made in one telling, and not in the next.
    assert spoilt * 2 >= len(chosen) or name != "publish"
    assert died * 2 >= len(deaths)


async def all_of(name: str, answers: Sequence[Awaitable[str]]) -> list[str]:
    """Answers that say something, of coroutines of which a few go on at once."""
    places = asyncio.Semaphore(AT_ONCE)
    told: list[str] = []

    async def answered(answer: Awaitable[str]) -> None:
        async with places:
            try:
                told.append(await answer)
            except AssertionError as error:
                told.append(str(error))
        show_progress(f"{name}: told {len(told)} of {len(answers)} {told[-1]}")

    await asyncio.gather(*map(answered, answers))
    return [failure for failure in told if failure]
