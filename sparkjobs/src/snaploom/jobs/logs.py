"""Warnings that lower layers log, told as events: the only lines a run prints are its own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from snaploom.jobs.events import Tell, Warned

LOGGER = "snaploom"
"""Parent of the loggers of all our modules."""


class _TellingHandler(logging.Handler):
    def __init__(self, tell: Tell) -> None:
        super().__init__(logging.WARNING)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        self._tell(Warned(record.getMessage()))


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
