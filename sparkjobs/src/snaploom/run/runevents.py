"""Events of a run as small frozen objects, and its interruption by Ctrl-C or SIGTERM."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.metadata import entry_points
from itertools import pairwise
from statistics import fmean, median
from time import monotonic
from types import FrameType
from typing import Any, Generic, Protocol, TypeVar, cast

from pydantic import JsonValue

from snaploom.errors import Interrupted, SnaploomError
from snaploom.models.common import EpochNanos
from snaploom.models.findings import Finding, make_finding
from snaploom.models.report import (
    CollectedFiles,
    LatestSnapshot,
    ManifestPointer,
    PublishedSnapshot,
    Report,
    SnapshotReport,
    Unpublished,
)
from snaploom.output.state import FolderState
from snaploom.plan.bundle import Bundle

# Columns of a woven snapshot, and of what it was woven from: schemas as Spark's JSON has them.


@dataclass(frozen=True)
class ReadColumns:
    """The columns of a source before its transformers."""

    schema: str
    """As they were read."""
    time: EpochNanos
    below: Mapping[str, ReadColumns] = field(default_factory=dict)
    """Sources of a virtual source, by alias."""


@dataclass(frozen=True)
class WovenColumns:
    """The columns of a snapshot."""

    schema: str
    """As they are written."""
    read: Mapping[str, ReadColumns]
    """Of each source that takes part, by field name."""


# Estimates of publishing more snapshots, from those that are published.

_LOOKED_AT = 50
"""Snapshots, the newest ones, that an estimate is made from: older ones predict less."""


@dataclass(frozen=True)
class Estimate:
    """About what some snapshots will take; None where nothing published shows it."""

    snapshots: int
    rows: int | None = None
    bytes: int | None = None
    seconds: float | None = None
    """Wall time of weaving and publishing them."""

    @property
    def document(self) -> JsonValue:
        return asdict(self)

    def __str__(self) -> str:
        count = f"{self.snapshots} snapshot{'' if self.snapshots == 1 else 's'} due"
        if self.rows is None or self.bytes is None:
            return f"{count}; nothing published yet allows an estimate"
        size = f"{count}; about {self.rows:,} rows, {self.bytes / 2**20:,.1f} MiB"
        return size if self.seconds is None else f"{size}, {self.seconds:,.0f} s"


def estimate_of(state: FolderState, due: int) -> Estimate:
    """Estimate the publication of so many snapshots more.

    Rows and bytes are the mean of what is published. The time of a snapshot is the median of that
    between two publications of one run, which wove one right after the other.
    """
    known = sorted(state.snapshots, key=lambda record: record.created_at)[-_LOOKED_AT:]
    if not known:
        return Estimate(due)
    pauses = [
        (later.created_at - earlier.created_at) / 1e9
        for earlier, later in pairwise(known)
        if earlier.run_id == later.run_id
    ]
    return Estimate(
        due,
        round(due * fmean(record.rows for record in known)),
        round(due * fmean(sum(file.bytes for file in record.files) for record in known)),
        round(due * median(pauses), 1) if pauses else None,
    )


# Events of a run: small frozen objects, emitted in the order in which things happen.


@dataclass(frozen=True)
class RunPlanned:
    """It is known what will be visited."""

    output: str
    snapshots: int
    joins: int


@dataclass(frozen=True)
class RunEstimated:
    """A backfill was estimated."""

    output: str
    estimate: Estimate


@dataclass(frozen=True)
class LeaseAwaited:
    """Another run is at work on the output, and is waited for."""

    holder: str


@dataclass(frozen=True)
class SnapshotStarted:
    """A snapshot is being woven."""

    number: int
    snapshots: int
    time: EpochNanos


@dataclass(frozen=True)
class JoinPlanned:
    """One more join is part of the snapshot's Spark plan."""

    number: int
    joins: int
    field_name: str


@dataclass(frozen=True)
class TasksDone:
    """Progress of Spark with the snapshot."""

    done: int
    tasks: int


@dataclass(frozen=True)
class SnapshotPublished:
    """A snapshot is live."""

    report: SnapshotReport
    columns: WovenColumns | None = None
    """Its columns, and those that it was woven from; None where nobody kept them."""


@dataclass(frozen=True)
class ManifestRead:
    """State of the folder after a publication of this run."""

    manifest: ManifestPointer
    newest: LatestSnapshot | None
    published: tuple[PublishedSnapshot, ...]
    """The newest published snapshots, newest first, as far as a status has room."""
    count: int


@dataclass(frozen=True)
class SnapshotLeftOut:
    """A snapshot was skipped or failed."""

    outcome: Unpublished
    is_failure: bool


@dataclass(frozen=True)
class FilesCollected:
    """Files of snapshots that are not published any more are removed."""

    collected: CollectedFiles


@dataclass(frozen=True)
class IndexFollowed:
    """A skipping index knows what was published."""

    label: str
    done: tuple[str, ...]
    """Changes to it, in a few words each."""


@dataclass(frozen=True)
class Warned:
    """Something that a person should know, and that stops nothing."""

    message: str


@dataclass(frozen=True)
class OfOutput:
    """An event of one of several outputs that are woven at a time."""

    output: str
    event: Event


Event = (
    RunPlanned
    | RunEstimated
    | LeaseAwaited
    | SnapshotStarted
    | JoinPlanned
    | TasksDone
    | SnapshotPublished
    | ManifestRead
    | SnapshotLeftOut
    | FilesCollected
    | IndexFollowed
    | Warned
    | OfOutput
)
EmitEvent = Callable[[Event], None]
"""Takes an event; must not raise and must not block."""


# Errors of preflight as findings; without Spark and Arrow, since the operator shows them too.


def preflight_finding(error: SnaploomError, reason: str = "") -> Finding:
    """An error that is not only about declarations, as a finding."""
    return make_finding(
        "SL192",
        f"{reason}: {error.message}" if reason else error.message,
        resource=error.resource or "",
        path=error.path or "",
        found=error.found or "",
        expected=error.expected or "",
        hint=error.hint,
    )


# Ctrl-C and SIGTERM: stop soon, and leave nothing half done.

Result = TypeVar("Result")

TICK_SECONDS = 0.2
"""Interval at which the waiting main thread looks up; people see movement, and it costs nothing."""
SAME_REQUEST_SECONDS = 1.0
"""Signals within this time are one request: a terminal sends Ctrl-C to every process of its group,
and launchers such as `uv run` pass on what their child has received already."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Whether somebody asked to stop, once or again."""

    def __init__(self) -> None:
        self._first: float | None = None
        self.is_insisted_on = False
        """Whether somebody asked again."""

    def request(self) -> None:
        """Ask to stop; asking again, later than the same keystroke, is to stop at once."""
        now = monotonic()
        if self._first is None:
            self._first = now
        elif now - self._first > SAME_REQUEST_SECONDS:
            self.is_insisted_on = True

    @property
    def is_requested(self) -> bool:
        return self._first is not None

    @property
    def cause(self) -> Interrupted | None:
        """The error to report for any failure after a request; None without one."""
        return Interrupted("the run was interrupted") if self.is_requested else None

    def check(self) -> None:
        cause = self.cause
        if cause is not None:
            raise cause


@contextmanager
def signal_handlers() -> Iterator[Interruption]:
    """Ctrl-C and SIGTERM are requests to stop, as long as the block lasts.

    In another thread than the main one Python allows no handlers, and signals do as before.
    """
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return

    def ask(_signal: int, _frame: FrameType | None) -> None:
        interruption.request()

    previous = {number: signal.signal(number, ask) for number in SIGNALS}
    try:
        yield interruption
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class _Worker(threading.Thread, Generic[Result]):
    def __init__(self, work: Callable[[], Result]) -> None:
        # A daemon, so that a second request can leave it behind.
        super().__init__(name="snaploom-work", daemon=True)
        self._work = work
        self._result: tuple[Result] | None = None
        self._failure: BaseException | None = None

    def run(self) -> None:
        try:
            self._result = (self._work(),)
        except BaseException as failure:  # noqa: BLE001 - raised again in the main thread
            self._failure = failure

    def outcome(self) -> Result:
        if self._failure is not None:
            raise self._failure
        assert self._result is not None, "the thread has ended"
        return self._result[0]


def in_background(work: Callable[[], Result]) -> Callable[[], Result]:
    """Begin `work` in a thread; the result waits for its end, and returns or raises as it does."""
    worker = _Worker(work)
    worker.start()

    def outcome() -> Result:
        worker.join()
        return worker.outcome()

    return outcome


def run_interruptibly(
    work: Callable[[], Result],
    interruption: Interruption,
    cancel: Callable[[], None],
    on_tick: Callable[[], None],
) -> Result:
    """Run `work` in a thread while this one waits and looks up.

    Args:
        work: must end soon once an interruption is requested and `cancel` was called.
        interruption: from `signal_handlers`.
        cancel: ends what `work` waits for; called at every tick from a request on, since the next
            thing that is started must end as well.
        on_tick: called at every tick.
    """
    worker = _Worker(work)
    worker.start()
    try:
        while worker.is_alive():
            worker.join(TICK_SECONDS)
            if interruption.is_insisted_on:
                raise Interrupted(
                    "the run was interrupted twice and has left at once",
                    hint="run again; 'snaploom gc' removes what it was writing, nothing is half "
                    "published",
                )
            if interruption.is_requested:
                cancel()
            on_tick()
    except BaseException:
        if not interruption.is_insisted_on:
            interruption.request()
            cancel()
            worker.join()
        raise
    return worker.outcome()


# Listeners of runs, which plug-ins register.

LISTENERS = "snaploom.run.listeners"
"""Entry-point group of functions such as `ListenToRuns`."""


class Follower(Protocol):
    """Takes the events of one run of one output; none of it raises, or waits."""

    def take(self, event: Event) -> None:
        """Something happened."""

    def ended(self, report: Report) -> None:
        """The run ended."""

    def broke_off(self) -> None:
        """The run ended by a fault of Snaploom itself."""


Begin = Callable[[Bundle], Follower]
"""A run of an output begins."""
ListenToRuns = Callable[
    [Mapping[str, str], EmitEvent, Callable[[], bool]], AbstractContextManager[Begin | None]
]
"""Listens to the runs of a block; None where the environment asks for nothing."""


class _Followers:
    """Hands the events of a run to the listeners of plug-ins."""

    def __init__(self, begins: Mapping[str, Begin], emit: EmitEvent, bundle: Bundle) -> None:
        self._emit = emit
        self._each: dict[str, Follower] = {}
        for name, begin in begins.items():
            with _guarded(name, emit):
                self._each[name] = begin(bundle)

    def take(self, event: Event) -> None:
        self._hand(lambda one: one.take(event))

    def ended(self, report: Report) -> None:
        self._hand(lambda one: one.ended(report))

    def broke_off(self) -> None:
        self._hand(lambda one: one.broke_off())

    def _hand(self, give: Callable[[Follower], None]) -> None:
        for name, one in self._each.items():
            with _guarded(name, self._emit):
                give(one)


@contextmanager
def _guarded(name: str, emit: EmitEvent) -> Iterator[None]:
    """Turn any failure of a listener into a warning: it may be of others, and ends no run."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - as above
        emit(Warned(f"the listener {name} failed: {type(error).__name__}: {error}"))


@contextmanager
def run_listeners(
    environment: Mapping[str, str], emit: EmitEvent, is_hurried: Callable[[], bool]
) -> Iterator[Begin]:
    """Let plug-ins listen to the runs of the block; `emit` is called from any thread."""
    with ExitStack() as stack:
        begins: dict[str, Begin] = {}
        for entry in entry_points(group=LISTENERS):
            with _guarded(entry.name, emit):
                listening = cast(ListenToRuns, entry.load())(environment, emit, is_hurried)
                if begin := listening.__enter__():
                    begins[entry.name] = begin
                stack.push(partial(_leave, listening, entry.name, emit))
        yield partial(_Followers, begins, emit)


def _leave(
    listening: AbstractContextManager[Begin | None], name: str, emit: EmitEvent, *ended: Any
) -> None:
    with _guarded(name, emit):
        listening.__exit__(*ended)
