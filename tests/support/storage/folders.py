"""Output folders, runs and snapshots for tests of storage."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from support.storage.faultystore import Fault, FaultyStore

from snaploom.files.objectstore import ObjectStore
from snaploom.models.common import EpochNanos
from snaploom.output import entries, publication
from snaploom.output.folder import CrashPoint, Folder, Run, prepare_folder
from snaploom.output.layout import new_run_id
from snaploom.output.leases import FREE, LeaseState, LeaseUnavailable, Swap
from snaploom.output.replacement import Replaced, Rewrite, replace_version
from snaploom.output.state import FolderState, tombstone_of

BEFORE_THE_COMMIT = [
    CrashPoint.BEFORE_STAGING,
    CrashPoint.AFTER_STAGING,
    CrashPoint.DURING_PROMOTION,
    CrashPoint.AFTER_PROMOTION,
]


@dataclass
class MemoryLease:
    """See `snaploom.output.leases.Lease`; nothing of it belongs to one party."""

    seen: LeaseState = FREE
    is_down: bool = False
    changes: int = 0

    def read(self) -> LeaseState:
        if self.is_down:
            raise LeaseUnavailable("the lease is unavailable: no answer")
        return self.seen

    def swap(self, swap: Swap) -> LeaseState | None:
        if self.read() != swap.expected:
            return None
        self.changes += 1
        self.seen = LeaseState(swap.holder, swap.seconds, str(self.changes))
        return self.seen


START = EpochNanos(1_577_836_800_000_000_000)
"""2020-01-01T00:00:00Z"""
DAY = 86_400 * 1_000_000_000

SETTINGS = entries.FolderSettings(
    data_format="PARQUET",
    data_compression="SNAPPY",
    partition_field_name="day",
    timestamp_format="UNIX_MILLISECONDS",
    output_timezone="",
)
IDENTITY = entries.FolderIdentity(output="customers", root="customer")
MODEL = (
    entries.ModelNode(field_name="", parent="", source="customer"),
    entries.ModelNode(
        field_name="address", parent="", source="addresses", relationship="address_id"
    ),
)


def now() -> EpochNanos:
    """The time by the clock that local files are stamped with."""
    return EpochNanos(time.time_ns())


def ignore(point: CrashPoint) -> None:
    return None


def a_run(reached: Callable[[CrashPoint], None] = ignore, start: int = START) -> Run:
    """A run whose clock ticks a second at each look."""
    ticks = count(start, 1_000_000_000)
    run_id = new_run_id(EpochNanos(start))
    return Run(run_id, "0.0.0", lambda: EpochNanos(next(ticks)), reached)


def at(point: CrashPoint, act: Callable[[], object]) -> Callable[[CrashPoint], None]:
    """Do something whenever a run is at a point."""

    def reached(here: CrashPoint) -> None:
        if here is point:
            act()

    return reached


def raising(error: BaseException) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


def day(number: int) -> EpochNanos:
    return EpochNanos(START + number * DAY)


def a_target(number: int = 0) -> publication.SnapshotTarget:
    return publication.SnapshotTarget(day(number), f"day={number}", "plan", MODEL)


def a_folder(store: ObjectStore, run: Run | None = None) -> Folder:
    return prepare_folder(store, SETTINGS, IDENTITY, run or a_run())


def failing(store: ObjectStore, faults: Callable[[str, str], Fault | None]) -> Folder:
    """A folder whose store has faults from when it is begun."""
    faulty = FaultyStore(store)
    folder = a_folder(faulty)
    faulty.faults = faults
    return folder


NO_COLUMNS = '{"type":"struct","fields":[]}'


def writes(
    store: ObjectStore, files: int = 2, schema: str = NO_COLUMNS
) -> Callable[[str], publication.WriteResult]:
    """A writer that leaves data files, a marker and a checksum, as Spark does."""

    def write(uri: str) -> publication.WriteResult:
        staging = uri.removeprefix(store.uri)
        for number in range(files):
            store.put_if_absent(f"{staging}part-{number:05d}-x.snappy.parquet", uri.encode())
        store.put_if_absent(f"{staging}_SUCCESS", b"")
        store.put_if_absent(f"{staging}.part-00000-x.snappy.parquet.crc", b"crc")
        return publication.WriteResult(rows=10 * files, schema=schema)

    return write


def agrees(state: FolderState, record: entries.SnapshotRecord) -> None:
    return None


def published(
    folder: Folder, number: int = 0, run: Run | None = None, files: int = 2
) -> publication.Published | publication.AlreadyPublished:
    write = writes(folder.store, files)
    return publication.publish(folder, run or a_run(), a_target(number), write, agrees)


def rewrites(store: ObjectStore, rows: int, files: int = 1) -> Callable[[str], Rewrite]:
    """A writer that leaves files, and claims that they hold so many rows."""

    def write(uri: str) -> Rewrite:
        writes(store, files)(uri)
        return Rewrite(rows, "4.3.0")

    return write


def replaced(folder: Folder, number: int = 0, run: Run | None = None, files: int = 1) -> Replaced:
    version = folder.log.read().live[day(number)]
    write = rewrites(folder.store, version.rows, files)
    return replace_version(folder, run or a_run(), version, write, message="sorted")


def bury(folder: Folder, *numbers: int) -> None:
    """End the snapshots of some days, or of day 0, as of a clock that is years behind."""

    def tombstone(state: FolderState) -> entries.Tombstone:
        seq = state.next_seq
        ended = (
            tombstone_of(state.live[day(n)], seq=seq, rule="maxSnapshotAge", deleted_at=START)
            for n in numbers or (0,)
        )
        return entries.Tombstone(
            seq=seq,
            run_id=a_run().run_id,
            written_at=START,
            tool_version="0.0.0",
            snapshots=tuple(ended),
        )

    folder.commit(tombstone)


def keys(store: ObjectStore, prefix: str = "data/") -> set[str]:
    return {info.key for info in store.list(prefix)}


def files_on_disk(root: Path) -> set[str]:
    """Files that a reader without the manifest would find."""
    return {str(p.relative_to(root)) for p in root.glob("data/[!.]*/*")}


def revoke(folder: Folder, run: Run) -> None:
    """Revoke a run, as a collector does that takes it for dead."""
    folder.log.commit(
        lambda state: entries.Revoke(
            seq=state.next_seq,
            run_id=a_run().run_id,
            written_at=START,
            tool_version="0.0.0",
            run_ids=(run.run_id,),
        )
    )
