"""Whether Spark is gone, however its JVM says so."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JNetworkError

from snaploom.jobs.session.failures import is_gone


def context(is_stopped: Callable[[], bool]) -> SimpleNamespace:
    return SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=is_stopped)))


def fails(error: Exception) -> Callable[[], bool]:
    def call() -> bool:
        raise error

    return call


@pytest.mark.parametrize("answer", [True, False])
def test_a_context_that_answers_is_believed(answer: bool) -> None:
    assert is_gone(context(lambda: answer)) is answer  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "error", [Py4JNetworkError(), TypeError("not callable"), ConnectionRefusedError()]
)
def test_a_context_that_fails_is_gone(error: Exception) -> None:
    assert is_gone(context(fails(error)))  # type: ignore[arg-type]


def test_a_context_without_its_jvm_is_gone_and_none_never_was_there() -> None:
    assert is_gone(SimpleNamespace(_jsc=None))  # type: ignore[arg-type]
    assert not is_gone(None)
