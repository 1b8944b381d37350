"""Settings that the engine needs in the session it is given, each with its reason (rule W4).

The engine never builds a session; `snaploom.jobs.session.spark` and the tests apply this list. What
can be set per write is set there (`snaploom.engine.write`), so that a session stays usable for
others.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SessionSetting:
    """One setting of the Spark session and why the engine needs it."""

    name: str
    value: str
    reason: str


SESSION_SETTINGS: tuple[SessionSetting, ...] = (
    SessionSetting(
        "spark.sql.caseSensitive",
        "false",
        "names are matched ignoring case everywhere",
    ),
    SessionSetting(
        "spark.sql.ansi.enabled",
        "true",
        "text of `query` runs under ANSI; keys are cast with try_cast, so that they become NULL",
    ),
    SessionSetting(
        "spark.sql.cbo.enabled",
        "true",
        "statistics choose join strategies; reordering touches inner joins only",
    ),
    SessionSetting(
        "spark.sql.runSQLOnFiles",
        "false",
        "a query of a virtual source reads its declared sources and nothing else",
    ),
    SessionSetting(
        "spark.sql.variable.substitute",
        "false",
        "`${env:NAME}` in a text is no variable of the environment, in quotes neither",
    ),
    SessionSetting(
        "spark.sql.sources.parallelPartitionDiscovery.parallelism",
        "64",
        "a snapshot is read file by file, and Spark would start one task for each to list it "
        "(2,000 files: 15 s instead of 5)",
    ),
    SessionSetting(
        "spark.sql.codegen.maxFields",
        "2000",
        "code generation stops at 100 leaf fields by default; nested rows pass that soon",
    ),
    SessionSetting(
        "spark.sql.codegen.cache.maxEntries",
        "1000",
        "one snapshot has several compiled parts a join; with the default of 100, thirty joins "
        "push each other out and are compiled again and again (measured: three times slower)",
    ),
    SessionSetting(
        "spark.sql.shuffle.spreadNullJoinKeys.enabled",
        "true",
        "left rows with NULL keys match nothing and must not all meet on one task (Spark 4.3; "
        "older versions ignore it)",
    ),
)
