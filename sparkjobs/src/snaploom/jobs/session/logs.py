"""What other layers and py4j log: the only lines a run prints are its own."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from snaploom.confidential import without_secrets
from snaploom.jobs.events import Tell, Warned

LOGGER = "snaploom"
"""Parent of the loggers of all our modules, and of nobody else's (N4)."""

AREAS: Mapping[str, str] = {
    "snaploom.storage": "The folder of an output: its log, what is published, replaced and removed",
    "snaploom.engine": "Reading sources and weaving",
    "snaploom.jobs": "What a run does around it",
    "snaploom.skipping": "Skipping indexes: in sessions of users, and while they are built",
}
"""One named logger for each area, with what it tells; modules log below the one of theirs."""


def silence_py4j() -> None:
    """Keep py4j from printing tracebacks when Spark's JVM goes away; our error tells it.

    py4j logs some failures through the root logger, so its own logger's level does not reach them.
    """
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


class _TellingHandler(logging.Handler):
    def __init__(self, tell: Tell) -> None:
        super().__init__(logging.WARNING)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        self._tell(Warned(without_secrets(record.getMessage())))


@contextmanager
def told_as_events(tell: Tell) -> Iterator[None]:
    """Whatever our modules log as a warning or worse is told, as long as the block lasts."""
    logger, handler = logging.getLogger(LOGGER), _TellingHandler(tell)
    propagated, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagated
