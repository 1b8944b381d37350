"""Installs the optimizer rule, which asks before a query reads files.

The rule is Java (`java/SkippingRule.java`) and decides nothing: for each filtered relation of files
it sends one request and drops what the answer lists. A request is a text: a header (JSON) in the
first line, lengths and modification times in the second and third, then one path a line. The header
names the listing; files that were sent before under that name are not sent again. A failure keeps
every file, is counted, and never reaches the query.

Settings of a session, read with every query:

| setting | default | meaning |
|---|---|---|
| `spark.snaploom.skipping.enabled` | true | false leaves plans as they are |
| `spark.snaploom.skipping.join.enabled` | true | use keys of a join's other side |
| `spark.snaploom.skipping.join.keys` | 10000 | how many different keys at most |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from py4j.java_gateway import JavaGateway
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from snaploom.skipping.spark.relations.janino import JavaRule, unpacked

Decider = Callable[[str], str | None]
"""From a request to one sign a file, `0` to drop it and `1` to keep it, or None to keep all.

A second line may name the indexes that decided, for Spark's EXPLAIN. A third one may have, between
commas, the tags that the files to drop had when they were indexed, or nothing for one: a local file
that has another one when it is about to be dropped is kept. `?` (`requests.FORGOTTEN`) answers a
header without files if those of that name are not known any more; it comes again with them.
"""

Concern = Callable[[str], bool]
"""From only a header to whether the relation may have an index; asked before files are listed."""

_FAILED = "!"
"""Begins an answer that is a failure; see `Installation.java`."""


def install(
    spark: SparkSession,
    decider: Decider,
    settings: Sequence[str],
    concerns: Concern = lambda header: True,
) -> None:
    """Make a session, and all sessions derived from it, ask before they read files.

    Installing again replaces decider and settings. Rules of others stay; if others replace the
    list of rules, ours is back with the next query. A session that is made after `spark.stop()` is
    none of the same family: install again.

    Args:
        spark: the session.
        decider: called in the driver while queries are planned, from several threads at once.
        settings: names whose values in the running session are sent along, such as
            `spark.sql.session.timeZone`; null is sent for those that have their default.
        concerns: called first, with the header without `mode` and `filters`.

    Raises:
        SkippingNotAvailable: no JVM in this process, or a Spark that the rule does not fit.
    """
    rule = JavaRule(spark)
    gateway = cast(JavaGateway, spark.sparkContext._gateway)
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    asked, concerned = _Callback(decider), _Callback(concerns)
    rule.facade.install(spark._jsparkSession, asked, concerned, list(settings))


def uninstall(spark: SparkSession) -> None:
    """Let a session, and all sessions of its family, read all files again."""
    JavaRule(spark).facade.uninstall(spark._jsparkSession)


def is_installed(spark: SparkSession) -> bool:
    """Whether queries of this session ask."""
    return JavaRule(spark).facade.isInstalled(spark._jsparkSession)


def errors(spark: SparkSession) -> tuple[int, str | None]:
    """Number of failed decisions in this JVM, and the last message."""
    facade = JavaRule(spark).facade
    return facade.failures(), facade.lastFailure()


class _Callback:
    """A function as Java sees it; it returns errors as values, whose message Py4J would lose."""

    def __init__(self, function: Callable[[str], str | bool | None]) -> None:
        self._function = function

    def apply(self, text: str) -> str | bool | None:
        try:
            return self._function(unpacked(text))
        except Exception as error:  # noqa: BLE001 -- a query must never fail because of an index
            return f"{_FAILED}{type(error).__name__}: {error}"

    class Java:
        implements = ("java.util.function.Function",)
