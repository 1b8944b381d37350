"""Cycles among things that read each other."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from snaploom.planning.cycles import cyclic_groups, shortest_cycle

NAMES = st.sampled_from("abcdefg")
GRAPHS = st.dictionaries(NAMES, st.lists(NAMES, unique=True, max_size=4))


def reached(reads: dict[str, list[str]], start: str) -> dict[str, int]:
    """What is reached from a name, by the least number of steps."""
    found: dict[str, int] = {}
    step, now = 1, set(reads.get(start, ()))
    while now:
        found.update(dict.fromkeys(now, step))
        now = {other for name in now for other in reads.get(name, ())} - found.keys()
        step += 1
    return found


@given(GRAPHS)
def test_names_share_a_group_when_each_reaches_the_other(reads: dict[str, list[str]]) -> None:
    reach = {name: reached(reads, name) for name in "abcdefg"}
    expected = {
        frozenset(other for other in reach[name] if name in reach[other])
        for name in reach
        if name in reach[name]
    }
    assert sorted(map(sorted, cyclic_groups(reads))) == sorted(map(sorted, expected))


@given(GRAPHS)
def test_shortest_cycle_leads_back_in_as_few_steps_as_possible(reads: dict[str, list[str]]) -> None:
    for group in cyclic_groups(reads):
        for name in group:
            cycle = shortest_cycle(reads, name)
            assert cycle[0] == cycle[-1] == name
            assert all(after in reads[one] for one, after in pairwise(cycle))
            assert len(cycle) == reached(reads, name)[name] + 1


def test_a_chain_longer_than_the_stack_has_no_cycle_until_it_is_closed() -> None:
    chain = {str(number): [str(number + 1)] for number in range(20_000)}
    assert cyclic_groups(chain) == []
    assert [len(group) for group in cyclic_groups({**chain, "20000": ["0"]})] == [20_001]
