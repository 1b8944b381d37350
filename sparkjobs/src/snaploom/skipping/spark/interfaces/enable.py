"""Switches skipping on and off in a session, and reports its statistics.

`enable(spark, "s3://lake/indexes")`, and every query of the session skips; nothing else changes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import entry_points
from typing import cast

from pyspark.sql import SparkSession

from snaploom.errors import SkippingNotAvailable
from snaploom.ondemand import load_registered
from snaploom.skipping.formats.parquetfiles import ParquetKeys
from snaploom.skipping.spark.interfaces import sqlfrontend
from snaploom.skipping.spark.optimizer import requests, rule
from snaploom.skipping.spark.optimizer.decision import Decider
from snaploom.skipping.spark.optimizer.usage import Statistics
from snaploom.spark.jvm import is_connect

ENTRY_POINTS = "snaploom.skipping.sessions"
"""Entry-point group: functions that are called with each session in which skipping is enabled."""

_deciders: dict[str, Decider] = {}
"""By the id of the Spark application: sessions of one application share what is known."""
_lock = threading.Lock()


def enable(spark: SparkSession, *bases: str, keys: ParquetKeys | None = None) -> None:
    """Let the queries of a session, and of sessions made from it, skip files.

    `spark.sql` of the session takes statements about skipping indexes from then on. Enabling again
    adds locations. After `spark.stop()` a new session is enabled anew. `DataFrame.inputFiles` goes
    on naming every file of the relations: those that may be read, not those that are.

    Raises:
        SkippingNotAvailable: Spark Connect, or a Spark that the optimizer rule does not fit.
        StorageError: no store is known for the scheme of a location.
    """
    refuse_connect(spark)
    with _lock:
        decider = _deciders.get(_application(spark)) or Decider()
        decider.add_bases(bases, keys)
        rule.install(spark, decider, requests.REQUESTED, decider.concerns)
        # What stopped applications knew is of no use to anybody.
        gone = [each for each in _deciders.values() if each is not decider]
        _deciders.clear()
        _deciders[_application(spark)] = decider
    for each in gone:
        each.recorder.close()
    for entry in entry_points(group=ENTRY_POINTS):
        extend = load_registered(entry, "the extension of sessions")
        cast(Callable[[SparkSession], None], extend)(spark)
    sqlfrontend.accept_statements(spark, bases, keys)


def disable(spark: SparkSession) -> None:
    """Let a session, and the sessions of its family, read every file again.

    Locations and keys with which it was enabled are forgotten, and what its queries made of indexes
    is written down beside these, where that can be done.
    """
    refuse_connect(spark)
    with _lock:
        rule.uninstall(spark)
        decider = _deciders.pop(_application(spark), None)
    if decider is not None:
        decider.recorder.close()
    sqlfrontend.leave_statements(spark)


def is_enabled(spark: SparkSession) -> bool:
    """Whether queries of this session skip files."""
    refuse_connect(spark)
    is_switched_on = requests.SkippingSettings.of(
        {name: spark.conf.get(name, None) for name in (requests.ENABLED, requests.FLINT_ENABLED)}
    ).is_enabled
    return is_switched_on and _application(spark) in _deciders and rule.is_installed(spark)


@contextmanager
def without_skipping(spark: SparkSession) -> Iterator[None]:
    """Read every file in a `with` block: queries that are planned in it do not skip.

    A frame whose plan was made before keeps it. The switch is the session's, for all its threads.
    """
    with setting(spark, requests.ENABLED, "false"):
        yield


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """Set a session setting for the duration of the block."""
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, before)


def decider_of(spark: SparkSession) -> Decider:
    """Return the session's decider; `SkippingNotAvailable` if skipping is not enabled."""
    refuse_connect(spark)
    decider = _deciders.get(_application(spark))
    if decider is None or not rule.is_installed(spark):
        raise SkippingNotAvailable(
            "skipping is not enabled in this session",
            hint="call snaploom.skipping.enable(spark, <location of indexes>) first",
        )
    return decider


def refuse_connect(spark: object) -> None:
    """Raise `SkippingNotAvailable` for a session that has no JVM in this process."""
    if is_connect(spark):
        raise SkippingNotAvailable(
            "a Spark Connect session cannot skip files by itself: its plans are made in the server",
            found=f"a session of {type(spark).__module__}",
            expected="a classic session: SparkSession.builder.master(...).getOrCreate()",
        )


def _application(spark: SparkSession) -> str:
    return str(spark.sparkContext.applicationId)


def statistics(spark: SparkSession) -> Statistics:
    """Sums over the queries of a session and of all sessions of its application.

    Raises:
        SkippingNotAvailable: skipping is not enabled.
    """
    counted = decider_of(spark).counting.read()
    failures, message = rule.errors(spark)
    # What goes wrong in the JVM is counted there, since it started.
    return replace(
        counted,
        errors=counted.errors + failures,
        last_error=counted.last_error or message or "",
    )


def reset_statistics(spark: SparkSession) -> None:
    """Begin to sum anew; when indexes were last used stays known.

    Raises:
        SkippingNotAvailable: skipping is not enabled.
    """
    decider_of(spark).counting.reset()
