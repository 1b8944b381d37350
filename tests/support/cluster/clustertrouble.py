"""What a cluster shows when it did not reach an expected state."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from support.cluster.clusterkubectl import KubectlFailed


class NotAsExpected(AssertionError):
    """The cluster did not reach an expected state; with all that it shows of it."""


def answers(kubectl: Callable[..., str], asked: Sequence[tuple[str, ...]]) -> str:
    """What kubectl answers, as on a terminal; a refusal is an answer too.

    Args:
        kubectl: takes the arguments of a command.
        asked: the commands.
    """
    return "\n".join(f"$ kubectl {' '.join(each)}\n{_answer(kubectl, each)}" for each in asked)


def _answer(kubectl: Callable[..., str], asked: tuple[str, ...]) -> str:
    try:
        return kubectl(*asked)
    except KubectlFailed as failure:
        return str(failure)
