"""Several at a time, each after what it waits for; one failure begins nothing more."""

from __future__ import annotations

import threading

import pytest

from snaploom.run.weaving.parallel import in_parallel


def always() -> bool:
    return True


@pytest.mark.parametrize("most", [1, 2, 5])
def test_what_is_waited_for_comes_first(most: int) -> None:
    done: list[str] = []
    after = {"a": {"c"}, "c": {"d", "elsewhere"}}
    result = in_parallel(list("abcd"), after, most, lambda n: done.append(n) or n, always)
    assert list(result) == list("abcd")
    assert done.index("d") < done.index("c") < done.index("a")


def test_one_at_a_time_is_in_order() -> None:
    done: list[str] = []
    in_parallel(list("badc"), {}, 1, done.append, always)
    assert done == list("badc")


def test_as_many_run_at_once_as_asked_for() -> None:
    meeting = threading.Barrier(3, timeout=30)
    assert len(in_parallel(list("abcdef"), {}, 3, lambda _: meeting.wait(), always)) == 6


def test_nothing_is_begun_once_it_does_not_go_on() -> None:
    done: list[str] = []
    result = in_parallel(list("abc"), {}, 1, done.append, lambda: not done)
    assert (done, list(result)) == (["a"], ["a"])


def test_failure_is_raised_and_ends_it() -> None:
    done: list[str] = []

    def work(name: str) -> None:
        done.append(name)
        raise KeyError(name)

    with pytest.raises(KeyError, match="a"):
        in_parallel(list("abc"), {}, 1, work, always)
    assert done == ["a"]


def test_circle_does_not_stop_everything() -> None:
    assert list(in_parallel(["a", "b"], {"a": {"b"}, "b": {"a"}}, 2, str.upper, always)) == [
        "a",
        "b",
    ]
