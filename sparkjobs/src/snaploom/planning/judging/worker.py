"""`python -m snaploom.planning.judging.worker`: judges texts, one line in, one line out.

It is a process so that the one that waits for it can end it: a thread cannot be ended. Its memory
is bounded, so that a text cannot take that of others either.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from types import FrameType

from snaploom import ondemand
from snaploom.planning.judging.regexlist import MOST_MEMORY, MOST_SECONDS
from snaploom.planning.judging.texts import JudgedText, Verdict, judge, too_long
from snaploom.planning.judging.wire import read_text, verdict_line


class _OutOfTime(BaseException):
    """The processor time of a text is used up; no handler of a parser catches it."""


def main() -> None:
    """Judge until the input ends; the first line signals readiness."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends it
    os.nice(15)  # who answers reviews goes first: bench-admission is measured so
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    signal.signal(signal.SIGVTALRM, _out_of_time)
    _ = ondemand.judge_sql  # so that no text's time is used for the import
    _write(b"\n")
    for line in sys.stdin.buffer:
        _write(verdict_line(_timed(read_text(line))))


def _timed(text: JudgedText) -> Verdict:
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
        verdict = judge(text)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    except _OutOfTime:
        return too_long(text)
    return verdict


def _out_of_time(_signal: int, _frame: FrameType | None) -> None:
    raise _OutOfTime


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
