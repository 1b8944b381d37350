"""What jobs do with Spark, typed for callers that must not import Spark before they need it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, cast

from snaploom import lazyimport
from snaploom.jobs.declarations.declarationfiles import Declarations
from snaploom.jobs.driverlock import jars_for
from snaploom.jobs.hadoopsettings import JARS
from snaploom.jobs.interruption import Interruption, in_background
from snaploom.jobs.published.datadiff import DataDiffRequest
from snaploom.jobs.published.runestimate import Estimate
from snaploom.jobs.weaving.runrequest import PlanRequest, RunRequest
from snaploom.listing.sourcefiles import SourceFiles
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.report import Report
from snaploom.models.run import RunSettings
from snaploom.models.times import EpochNanos
from snaploom.planning.plan import RunPlan
from snaploom.planning.rowchanges import DataComparison
from snaploom.storage.objectstore import ObjectStore
from snaploom.storage.readchoice import Time
from snaploom.storage.state import FolderState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    # These bring Arrow along, which commands of the operator's image do without.
    from snaploom.jobs.indexes.indexrequests import IndexedPlace
    from snaploom.storage.foldercheck import Fault


class OpenSession(Protocol):
    """Gives the session for a piece of work."""

    def __call__(
        self, name: str, run: RunSettings, allow: Allowances, /, *, is_small: bool = False
    ) -> SparkSession:
        """A session.

        Args:
            name: of the piece of work.
            run: how the session is made.
            allow: what it may ask for.
            is_small: whether little is read.
        """
        ...


OpenedSession = Callable[[], "SparkSession"]
"""Waits for a session that is being opened, and gives it; raises what opening it raised."""


class BuildSession(Protocol):
    """`snaploom.jobs.session.spark.build_session`."""

    def __call__(
        self,
        name: str,
        run: RunSettings,
        allow: Allowances = NO_ALLOWANCES,
        asked: Iterable[tuple[str, str]] = (),
        *,
        is_small: bool = False,
    ) -> SparkSession:
        """The session of this process, made when there is none."""
        ...


def _build_session(
    name: str,
    run: RunSettings,
    allow: Allowances,
    asked: Iterable[tuple[str, str]] = (),
    *,
    is_small: bool = False,
) -> SparkSession:
    build = cast(BuildSession, lazyimport.resolve(lazyimport.BUILD_SESSION))
    return build(name, run, allow, asked, is_small=is_small)


BUILT: OpenSession = _build_session
"""The session of this process, made when there is none."""


def open_early(
    open_session: OpenSession,
    name: str,
    run: RunSettings,
    allow: Allowances,
    *,
    is_small: bool = False,
) -> OpenedSession:
    """Begin to open a session, in a thread, while this one imports what works with it.

    Spark's JVM takes seconds to start, and importing the engine half a second of a processor.

    Args:
        open_session: gives the session.
        name: of the piece of work.
        run: how the session is made.
        allow: what it may ask for.
        is_small: whether little is read.
    """
    # PySpark's modules import each other in circles, which two threads must not enter at once.
    lazyimport.resolve(lazyimport.BUILD_SESSION)
    return in_background(lambda: open_session(name, run, allow, is_small=is_small))


def with_drivers(declarations: Declarations, *, is_kept: bool = False) -> OpenSession:
    """Gives the session of this process, with the locked JDBC drivers that some sources need.

    Args:
        declarations: hold the sources.
        is_kept: whether the process goes on with the session, to do whatever comes.

    Raises:
        ArgumentInvalid: by the session: a driver is not what the project's lock file names.
    """

    def opened(
        name: str, run: RunSettings, allow: Allowances, /, *, is_small: bool = False
    ) -> SparkSession:
        jars = [str(jar.absolute()) for jar in jars_for(declarations.loaded)]
        own = run.spark.spark_conf.get(JARS) if run.spark is not None else None
        asked = ((JARS, ",".join([*([own] if own else []), *jars])),) if jars else ()
        return _build_session(name, run, allow, asked, is_small=is_small and not is_kept)

    return opened


IndexPlaces = Callable[[str], "Sequence[IndexedPlace]"]
"""From the name of an output to its indexes with `trigger: ON_PUBLISH`."""


def no_indexes(output: str) -> Sequence[IndexedPlace]:
    """No index follows."""
    return ()


def index_places(declarations: Declarations, warn: Callable[[str], None]) -> IndexPlaces:
    """The indexes of some declarations that follow publications; asked when something is woven.

    Args:
        declarations: where they and what they refer to are.
        warn: takes a warning about each that is left out.
    """

    def places(output: str) -> Sequence[IndexedPlace]:
        found = cast(PlacesOnPublish, lazyimport.resolve(lazyimport.INDEX_PLACES))
        return found(declarations, output, warn)

    return places


PlacesOnPublish = Callable[[Declarations, str, Callable[[str], None]], "tuple[IndexedPlace, ...]"]
"""`snaploom.jobs.indexes.targets.places_on_publish`, which brings Arrow along."""


WeaveOutputs = Callable[
    [
        RunRequest,
        Mapping[str, "Sequence[IndexedPlace]"],
        Mapping[str, SourceFiles],
        OpenedSession,
    ],
    tuple[Report, ...],
]
"""`snaploom.jobs.weaving.sparkruns.weave_outputs`."""
Preview = Callable[[PlanRequest, SourceFiles, OpenedSession], RunPlan]
"""`snaploom.jobs.weaving.sparkruns.preview`."""
EstimateRun = Callable[[PlanRequest, SourceFiles, OpenedSession], Estimate]
"""`snaploom.jobs.weaving.sparkruns.estimated`."""


class CheckContent(Protocol):
    """`snaploom.jobs.published.contentcheck.check_content`."""

    def __call__(
        self,
        run: RunSettings,
        store: ObjectStore,
        state: FolderState,
        root_key: Sequence[str],
        times: Sequence[EpochNanos],
        report: Callable[[str], None],
        interruption: Interruption,
        allow: Allowances = NO_ALLOWANCES,
        open_session: OpenSession = BUILT,
    ) -> tuple[Fault, ...]:
        """Read snapshots, and compare them with the manifest."""
        ...


class CompareData(Protocol):
    """`snaploom.jobs.published.rowdiff.compare_data`."""

    def __call__(
        self,
        request: DataDiffRequest,
        store: ObjectStore,
        moment: EpochNanos,
        interruption: Interruption,
        allow: Allowances = NO_ALLOWANCES,
        open_session: OpenSession = BUILT,
    ) -> DataComparison:
        """Compare two versions of snapshots row by row."""
        ...


def weave_with_spark() -> WeaveOutputs:
    """Weaves outputs in a session."""
    return cast(WeaveOutputs, lazyimport.resolve(lazyimport.WEAVE))


def preview_with_spark() -> Preview:
    """Plans a run in a session."""
    return cast(Preview, lazyimport.resolve(lazyimport.PREVIEW))


def estimate_with_spark() -> EstimateRun:
    """Estimates a backfill in a session."""
    return cast(EstimateRun, lazyimport.resolve(lazyimport.ESTIMATE))


def check_content() -> CheckContent:
    """Reads what is published, and compares it with its records."""
    return cast(CheckContent, lazyimport.resolve(lazyimport.CHECK_CONTENT))


def compare_data() -> CompareData:
    """Compares rows of two versions of snapshots."""
    return cast(CompareData, lazyimport.resolve(lazyimport.COMPARE_DATA))


class ReadFolder(Protocol):
    """`snaploom.reader.read`."""

    def __call__(
        self,
        spark: SparkSession,
        folder: str,
        *,
        at: Time | None = None,
        between: tuple[Time, Time] | None = None,
        manifest: int | None = None,
    ) -> DataFrame:
        """The published rows of an output."""
        ...


class SiblingSession(Protocol):
    """`snaploom.jobs.session.spark.sibling_session`."""

    def __call__(
        self, spark: SparkSession, run: RunSettings, allow: Allowances = NO_ALLOWANCES
    ) -> SparkSession:
        """A session of the same application."""
        ...


def read_folder() -> ReadFolder:
    """Reads what is published in a folder."""
    return cast(ReadFolder, lazyimport.resolve(lazyimport.LIBRARY["read"]))


ReadingSession = Callable[[str, RunSettings, Allowances], "SparkSession"]
"""`snaploom.jobs.session.spark.reading_session`."""


def reading_session() -> ReadingSession:
    """Gives the session of this process as it is, for reading; or a new one."""
    return cast(ReadingSession, lazyimport.resolve(lazyimport.READING_SESSION))


def session_beside(spark: SparkSession) -> OpenSession:
    """Gives sessions of the same application as somebody's, which keeps its settings."""
    sibling = cast(SiblingSession, lazyimport.resolve(lazyimport.SIBLING_SESSION))

    def opened(
        name: str, run: RunSettings, allow: Allowances, /, *, is_small: bool = False
    ) -> SparkSession:
        return sibling(spark, run, allow)

    return opened
