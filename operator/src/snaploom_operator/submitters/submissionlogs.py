"""Extracts the cause of a failed submission from the output of `spark-submit`.

Spark's operators put the whole output into one message: warnings, a log, an exception and the stack
traces of its causes, ten thousand characters with one relevant line. A status has room for a few
hundred.
"""

from __future__ import annotations

import re

_EXCEPTION = re.compile(r'^(?:Exception in thread "[^"]*"|Caused by:) (?P<cause>.+)$', re.MULTILINE)
_LOGGED = re.compile(
    r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d (?:TRACE|DEBUG|INFO|WARN) |Using Spark's default log4j profile|"
    r"Setting default log level|To adjust logging level"
)
"""Starts of lines that are unrelated to the failure."""
_STACK = re.compile(r"\s+(?:at |\.\.\. \d+ )")
_WARNING = re.compile(r"WARNING: Using incubator modules: \S+")
_PACKAGES = re.compile(r"^(?:[a-z][\w$]*\.)+(?=[A-Z])")
"""The package of a class name, which is removed."""
_ASKED, _ANSWERED, _AGAIN = "Failure executing: ", ". Message: ", " Received status: Status("
"""Text of Spark's client around the API server's message, which it contains twice."""
_LONGEST = 100_000
"""Characters that are searched. Spark's own message has some 12,000; a user could write a longer
one, and searching it must not block the event loop."""


def cause_in(message: str) -> str:
    """The cause in the message of a failed submission; a message without a log is unchanged."""
    message = message[:_LONGEST]
    if "\n" not in message:
        return message
    causes = [_plain(found["cause"]) for found in _EXCEPTION.finditer(message)]
    if causes:
        # The first has the failed operation, the last its root cause.
        return ": ".join(dict.fromkeys((causes[0], causes[-1])))
    lines = (s for s in message.splitlines() if not (_LOGGED.match(s) or _STACK.match(s)))
    informative = (_WARNING.sub("", line).strip() for line in lines)
    return "\n".join(line for line in informative if line) or message


def _plain(exception: str) -> str:
    asked, _, answered = exception.partition(_ANSWERED)
    if answered and _ASKED in asked:
        return answered.partition(_AGAIN)[0].rstrip(".")
    return _PACKAGES.sub("", exception)
