"""Routes log records of Snaploom's modules and py4j to a run's own lines."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from snaploom.confidential import without_secrets
from snaploom.jobs.runevents import EmitEvent, Warned

LOGGER = "snaploom"
"""Parent of the loggers of all our modules, and of nobody else's."""

AREAS: Mapping[str, str] = {
    "snaploom.storage": "The folder of an output: its log, what is published, replaced and removed",
    "snaploom.listing": "Listing the files of sources",
    "snaploom.engine": "Reading sources and weaving",
    "snaploom.jobs": "What a run does around it",
    "snaploom.skipping": "Skipping indexes: in sessions of users, and while they are built",
    "snaploom.interop": "Formats and services of others: Xskipper, OpenSearch",
}
"""One named logger for each area, with its subject; modules log below the one of theirs."""


def silence_py4j() -> None:
    """Keep py4j from printing tracebacks when Spark's JVM goes away; our error reports it.

    py4j logs some failures through the root logger, so its own logger's level does not reach them.
    """
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


class _EventHandler(logging.Handler):
    def __init__(self, emit_event: EmitEvent) -> None:
        super().__init__(logging.WARNING)
        self._emit_event = emit_event

    def emit(self, record: logging.LogRecord) -> None:
        self._emit_event(Warned(without_secrets(record.getMessage())))


@contextmanager
def warnings_as_events(emit_event: EmitEvent) -> Iterator[None]:
    """Emit what our modules log as warnings or errors as events, during the block."""
    logger, handler = logging.getLogger(LOGGER), _EventHandler(emit_event)
    propagated, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagated
