"""What reads what, and circles in it."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from support.declared.declarations import files, parsed, simple
from support.declared.joinmodels import customer_model, output_of

from snaploom.models.datasource import DataSource
from snaploom.plan.bundle import Bundle
from snaploom.plan.bundles import read_places
from snaploom.policy.references import ReadGraph

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
    assert sorted(map(sorted, ReadGraph(reads).circles)) == sorted(map(sorted, expected))


@given(GRAPHS)
def test_circle_leads_back_in_as_few_steps_as_possible(reads: dict[str, list[str]]) -> None:
    graph = ReadGraph(reads)
    for name in reads:
        circle, steps = graph.circle(name), reached(reads, name).get(name)
        assert bool(circle) == (steps is not None)
        if circle:
            assert circle[0] == circle[-1] == name
            assert all(after in reads[one] for one, after in pairwise(circle))
            assert len(circle) - 1 == steps


@given(GRAPHS, st.lists(NAMES))
def test_unknown_names_are_not_reached(reads: dict[str, list[str]], names: list[str]) -> None:
    expected = {name for name in names if name in reads}
    expected |= {other for name in names for other in reached(reads, name) if other in reads}
    assert ReadGraph(reads).reached(names) == expected


def test_the_first_by_name_of_equally_short_circles_is_named() -> None:
    reads = {"a": ["z", "c", "b"], "b": ["a"], "c": ["a"], "z": ["a"]}
    assert ReadGraph(reads).circle("a") == ("a", "b", "a")


def test_what_is_read_first_comes_first_and_once() -> None:
    reads = {"top": ["b", "a"], "b": ["deep"], "a": ["deep"], "deep": [], "other": []}
    assert ReadGraph(reads).in_order("top") == ("top", "b", "deep", "a")


def test_places_behind_more_queries_than_the_stack_holds_are_found() -> None:
    declared = [files("q0"), *(simple(f"q{n}", "SELECT 1", f"q{n - 1}") for n in range(1, 1500))]
    sources = tuple(each for each in parsed(declared) if isinstance(each, DataSource))
    bundle = Bundle(output_dataset=output_of(customer_model()), data_sources=sources)
    assert [place.name for place in read_places(bundle, "q1499")] == ["/data/q0"]
    assert [place.name for place in read_places(bundle, "q0")] == ["/data/q0"]


def test_a_chain_longer_than_the_stack_has_no_circle_until_it_is_closed() -> None:
    chain = {str(number): [str(number + 1)] for number in range(20_000)}
    assert ReadGraph(chain).circles == ()
    closed = ReadGraph({**chain, "20000": ["0"]})
    assert [len(group) for group in closed.circles] == [20_001]
    assert len(closed.circle("7")) == 20_002
    assert len(closed.in_order("7")) == 20_001


def test_circles_of_which_there_are_more_than_could_be_counted_are_not_enumerated() -> None:
    names = [f"n{number:03}" for number in range(300)]
    graph = ReadGraph(dict.fromkeys(names, names[1:]) | {names[0]: names})
    assert graph.circles == (frozenset(names[1:]), frozenset(names[:1]))
    assert graph.circle("n005") == ("n005", "n005")
