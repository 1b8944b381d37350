"""Sessions for callers that must not import Spark before they need it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from snaploom import ondemand
from snaploom.errors import SnaploomError
from snaploom.models.allowances import Allowances
from snaploom.models.run import Accelerator, RunSettings
from snaploom.models.skippingindex import SkippingIndex
from snaploom.policy.acceleration import chosen, is_accelerated
from snaploom.run.declarations import Declarations
from snaploom.run.driverlock import accelerator_jar, jars_for
from snaploom.run.runevents import in_background
from snaploom.run.session.classarchive import JARS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from snaploom.run.indexes.indexrequests import IndexedPlace


class OpenSession(Protocol):
    """Opens the session for a piece of work."""

    def __call__(
        self, name: str, run: RunSettings, allow: Allowances, /, *, is_small: bool = False
    ) -> SparkSession:
        """Return a session."""


OpenedSession = Callable[[], "SparkSession"]
"""Waits for a session that is being opened, and returns it; raises what opening it raised."""

IndexPlaces = Callable[[str], "Sequence[IndexedPlace]"]
"""From the name of an output to its indexes with `trigger: ON_PUBLISH`."""


def own_session(
    name: str,
    run: RunSettings,
    allow: Allowances,
    asked: Iterable[tuple[str, str]] = (),
    *,
    is_small: bool = False,
) -> SparkSession:
    """Return the session of this process, made when there is none."""
    return ondemand.build_session(name, run, allow, asked, is_small=is_small)


def open_early(
    open_session: OpenSession,
    name: str,
    run: RunSettings,
    allow: Allowances,
    *,
    resource: str = "",
    is_small: bool = False,
) -> OpenedSession:
    """Begin to open a session, in a thread, while this one imports what works with it.

    Spark's JVM takes seconds to start, and importing the engine half a second of a processor.
    `resource` is the one whose settings these are, for errors about them.
    """
    # PySpark's modules import each other in circles, which two threads must not enter at once.
    _ = ondemand.build_session

    def opened() -> SparkSession:
        try:
            return open_session(name, run, allow, is_small=is_small)
        except SnaploomError as error:
            if (error.path or "").startswith("spec."):
                error.resource = error.resource or resource
            raise

    return in_background(opened)


def with_drivers(
    declarations: Declarations, accelerator: Accelerator | None = None, *, is_kept: bool = False
) -> OpenSession:
    """Open the session of this process, with the locked jars that some sources and the run need.

    `accelerator` is that of an option, which wins over the environment and the declarations.
    `is_kept`: the process goes on with the session for work yet unknown.
    """

    def opened(
        name: str, run: RunSettings, allow: Allowances, /, *, is_small: bool = False
    ) -> SparkSession:
        """Return a session."""
        run = chosen(run, os.environ, accelerator)
        native = accelerator_jar(declarations.loaded) if is_accelerated(run.spark) else None
        needed = (*jars_for(declarations.loaded), *((native,) if native is not None else ()))
        jars = [str(jar.absolute()) for jar in needed]
        own = run.spark.spark_conf.get(JARS) if run.spark is not None else None
        asked = ((JARS, ",".join([*([own] if own else []), *jars])),) if jars else ()
        return own_session(name, run, allow, asked, is_small=is_small and not is_kept)

    return opened


def session_beside(spark: SparkSession) -> OpenSession:
    """Open sessions of the same application as a given one, which keeps its settings."""

    def opened(
        name: str, run: RunSettings, allow: Allowances, /, *, is_small: bool = False
    ) -> SparkSession:
        return ondemand.sibling_session(spark, run, allow)

    return opened


def no_indexes(output: str) -> Sequence[IndexedPlace]:
    """No index follows."""
    return ()


def index_places(declarations: Declarations, warn: Callable[[str], None]) -> IndexPlaces:
    """Find the indexes of some declarations that follow publications, when an output is woven."""
    if not any(isinstance(each, SkippingIndex) for each in declarations.resources):
        return no_indexes  # most projects have none, and all of skipping would be imported
    return lambda output: ondemand.places_on_publish(declarations, output, warn)
