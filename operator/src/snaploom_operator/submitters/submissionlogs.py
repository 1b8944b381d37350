"""Why a submission failed, out of all that `spark-submit` printed.

Spark's operators put the whole of it into one message: warnings, a log, an exception and the stacks
of its causes, ten thousand characters in which the reason is one line. A status has room for a few
hundred, and nobody reads more.
"""

from __future__ import annotations

import re

_EXCEPTION = re.compile(r'^(?:Exception in thread "[^"]*"|Caused by:) (?P<told>.+)$', re.MULTILINE)
_LOGGED = re.compile(
    r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d (?:TRACE|DEBUG|INFO|WARN) |Using Spark's default log4j profile|"
    r"Setting default log level|To adjust logging level"
)
"""How lines begin that say nothing of a failure."""
_STACK = re.compile(r"\s+(?:at |\.\.\. \d+ )")
_WARNING = re.compile(r"WARNING: Using incubator modules: \S+")
_PACKAGES = re.compile(r"^(?:[a-z][\w$]*\.)+(?=[A-Z])")
"""Of a class: its name alone tells enough."""
_ASKED, _ANSWERED, _AGAIN = "Failure executing: ", ". Message: ", " Received status: Status("
"""What Spark's client puts around the API server's words, which stand in it twice."""
_LONGEST = 100_000
"""Characters that are looked at. Spark's own message has some 12,000; who may write applications
could write a longer one, and what looks at it must not hold up the others."""


def cause_in(message: str) -> str:
    """Why a submission failed, in its own words.

    Args:
        message: what Spark's operator says; one that is no log is returned as it is.
    """
    message = message[:_LONGEST]
    if "\n" not in message:
        return message
    told = [_plain(found["told"]) for found in _EXCEPTION.finditer(message)]
    if told:
        # The first says what was tried, the last why it could not be done.
        return ": ".join(dict.fromkeys((told[0], told[-1])))
    lines = [_WARNING.sub("", line).strip() for line in message.splitlines() if _tells(line)]
    return "\n".join(line for line in lines if line) or message


def _tells(line: str) -> bool:
    return _LOGGED.match(line) is None and _STACK.match(line) is None


def _plain(exception: str) -> str:
    asked, _, answered = exception.partition(_ANSWERED)
    if answered and _ASKED in asked:
        return answered.partition(_AGAIN)[0].rstrip(".")
    return _PACKAGES.sub("", exception)
