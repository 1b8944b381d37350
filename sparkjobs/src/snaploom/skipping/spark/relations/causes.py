"""Cause of a Spark error in one line for people."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError

_WRAPPED = "Exception thrown in awaitResult"
"""How Spark's driver reports what another thread failed with; only the cause has a message."""


_TRACEBACK = "Traceback (most recent call last):\n"
"""What the message of an error in a Python worker has before its frames, which are indented."""


def cause_of(error: Exception) -> str:
    """The first line that is not empty; Spark's messages may begin with an empty one.

    Of an error in a Python worker, what the worker raised.
    """
    message = _java_message(error) if isinstance(error, Py4JJavaError) else str(error)
    frames = message.rpartition(_TRACEBACK)[2] if _TRACEBACK in message else ""
    raised = next((line for line in frames.splitlines() if line[:1].strip()), "")
    if raised:
        return f"a Python worker of Spark raised {raised}"
    return message.strip().split("\n", 1)[0].strip() or type(error).__name__


def _java_message(error: Py4JJavaError) -> str:
    failure = error.java_exception
    while _WRAPPED in str(failure.getMessage()) and failure.getCause() is not None:
        failure = failure.getCause()
    return str(failure.toString())
