"""Compares what is in an output's folder with what was published."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from snaploom import ondemand
from snaploom.errors import ArgumentInvalid
from snaploom.files.objectstore import ObjectStore
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.common import EpochNanos, format_instant
from snaploom.models.outputdataset import OutputDatasetSpec
from snaploom.output.foldercheck import Fault, FaultKind, check_files, check_log, check_table
from snaploom.output.icebergtable import TableLibrary
from snaploom.output.state import FolderState
from snaploom.run.runevents import Interruption
from snaploom.run.session.providers import OpenSession, own_session


@dataclass(frozen=True)
class CheckRequest:
    """Snapshots of a folder to be compared with the manifest."""

    store: ObjectStore
    state: FolderState
    times: Sequence[EpochNanos]
    """Times of the snapshots; they are live."""
    spec: OutputDatasetSpec | None = None
    """Of the output, where it is known: its keys are checked, too."""
    allow: Allowances = NO_ALLOWANCES
    """Entries that `spec.run` may use beyond the built-in lists."""
    library: TableLibrary | None = None
    """Leads to the catalog in which the output is a table; None where it is not to be looked at."""


def check_output(
    request: CheckRequest,
    files_only: bool,
    report: Callable[[str], None],
    interruption: Interruption,
    open_session: OpenSession = own_session,
) -> tuple[Fault, ...]:
    """Return every fault of the manifest, of the files, and of their content.

    `files_only` looks at names and sizes, without Spark; `report` is called from another thread.
    """
    store, state, times = request.store, request.state, request.times
    found = [
        *check_log(store),
        *check_table(store, state, request.library),
        *check_files(store, state),
    ]
    faults = [each for each in found if each.snapshot is None or each.snapshot in times]
    if not files_only and times:
        broken = {each.snapshot for each in faults} | _without_schema(state, faults)
        readable = replace(request, times=[time for time in times if time not in broken])
        faults += ondemand.check_content(readable, report, interruption, open_session)
    return tuple(faults)


def live_times(
    state: FolderState, asked: Collection[EpochNanos], option: str
) -> tuple[EpochNanos, ...]:
    """Return the times of the live snapshots that are asked for; of all where none is."""
    live = tuple(version.time for version in state.timeline)
    unknown = [format_instant(time) for time in asked if time not in live]
    if unknown:
        raise ArgumentInvalid(
            "no live snapshot has this time",
            path=option,
            found=", ".join(unknown),
            expected="times of published snapshots",
        )
    return tuple(time for time in live if not asked or time in asked)


def _without_schema(state: FolderState, faults: Sequence[Fault]) -> set[EpochNanos]:
    gone = {each.place for each in faults if each.kind is FaultKind.DOCUMENT}
    return {
        version.time
        for version in state.timeline
        if any(version.schema_hash in place for place in gone)
    }
