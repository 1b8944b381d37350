"""Finds and removes files that an output folder no longer needs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, islice

from snaploom.files.objectstore import TEMPORARY_PREFIX, ObjectInfo, ObjectStore
from snaploom.models.base import ApiModel
from snaploom.models.common import EpochNanos, TimeOffset
from snaploom.output import layout
from snaploom.output.documents import read_hint, write_hint
from snaploom.output.entries import TombstoneRecord
from snaploom.output.folder import CrashPoint, Folder, Run
from snaploom.output.layout import Count, Nanos
from snaploom.output.state import FolderState
from snaploom.plan.times import minus_bounded

# Finds what may be removed from an output folder, and removes it.

DEFAULT_READER_GRACE = TimeOffset(hour=1)
"""Of a folder without a recorded `outputFolder.readerGrace`: its default (rule P22)."""


class GarbageKind(StrEnum):
    """Kinds of unreferenced objects."""

    STAGING = "STAGING"
    """Left in staging by a run."""
    UNCOMMITTED = "UNCOMMITTED"
    """In its partition, of a run that did not commit it."""
    TOMBSTONED = "TOMBSTONED"
    """Of a snapshot that was deleted or replaced."""
    UNFINISHED = "UNFINISHED"
    """A write that never got its name."""
    FOREIGN = "FOREIGN"
    """Under `data/`, and not provably ours: reported, never removed."""


class Verdict(StrEnum):
    """Decisions about an object."""

    REMOVE = "REMOVE"
    KEEP_YOUNG = "KEEP_YOUNG"
    """Its run may be alive, or its readers may still be at it."""
    KEEP_FOREIGN = "KEEP_FOREIGN"
    """It is not ours."""


@dataclass(frozen=True)
class Garbage:
    """One object that no live snapshot refers to."""

    kind: GarbageKind
    verdict: Verdict
    key: str
    size: int
    run_id: str | None
    """The run that wrote it; None where the name has none."""
    why: str
    """The reason for the verdict, for people."""


def find_garbage(
    store: ObjectStore, state: FolderState, now: EpochNanos, grace: int, prefix: str = ""
) -> tuple[Garbage, ...]:
    """Objects that no live snapshot refers to, each with a verdict; changes nothing.

    Args:
        store: a folder that is ours (`open_folder`).
        state: committed state.
        now: the time to which ages are measured.
        grace: nanoseconds that leftovers and tombstoned files are kept: at least the time that a
            run may be silent, and that a reader may hold on to what it pinned.
        prefix: folder below which to look: `""` for everything.
    """
    places = (layout.DATA, TEMPORARY_PREFIX) if not prefix else (prefix,)
    listed = (info for place in places for info in store.list(place))
    infos = [info for info in listed if not info.key.startswith(layout.DELTA_LOG)]
    search = _Search(store, state, now - grace, _last_signs(store, infos))
    return tuple(sorted(search.judge(infos), key=lambda garbage: garbage.key))


def collect_garbage(folder: Folder, garbage: Iterable[Garbage], run: Run) -> tuple[Garbage, ...]:
    """Remove garbage with the verdict REMOVE after revoking its runs; returns the removed.

    Raises:
        SnapshotsHeld: a snapshot of the output's Iceberg table shows some of it.
    """
    doomed = [item for item in garbage if item.verdict is Verdict.REMOVE]
    if not doomed:
        return ()
    state = folder.revoke(_writers(doomed) - {run.run_id}, run)
    run.reached(CrashPoint.AFTER_REVOCATION)
    dead = [item for item in doomed if _is_dead(item, state, run)]
    folder.forget(*_of_table(dead, state), run)
    removed = []
    for item in dead:
        folder.store.delete([item.key])
        removed.append(item)
        run.reached(CrashPoint.DURING_DELETION)
    for run_id in sorted(_writers(g for g in removed if g.kind is GarbageKind.STAGING)):
        folder.store.prune(f"{layout.STAGING}{run_id}/")
    return tuple(removed)


def refuse_held(folder: Folder, garbage: Iterable[Garbage], state: FolderState) -> None:
    """Raise `SnapshotsHeld` where `collect_garbage` would; changes nothing."""
    doomed = [item for item in garbage if item.verdict is Verdict.REMOVE]
    folder.refuse_held(*_of_table(doomed, state))


def _of_table(
    dead: Sequence[Garbage], state: FolderState
) -> tuple[list[TombstoneRecord], list[str]]:
    """Ended versions, and files that a table may show."""
    found = filter(None, (state.tombstone_of(item.key) for item in dead))
    ended = {one.published_seq: one for one in found}.values()
    kinds = (GarbageKind.TOMBSTONED, GarbageKind.UNCOMMITTED)
    return list(ended), [item.key for item in dead if item.kind in kinds]


def promised_grace(state: FolderState, present: EpochNanos) -> int:
    """Nanoseconds for which readers may use a pinned manifest, up to a moment."""
    grace = state.reader_grace or DEFAULT_READER_GRACE
    return present - minus_bounded(present, grace, "UTC")


def ended_at(store: ObjectStore, seq: int, recorded: EpochNanos) -> int:
    """Return when an entry that ended versions was written, by the store's clock (rule P18)."""
    info = store.head(layout.manifest_key(seq))
    return info.modified if info is not None else recorded


def _writers(garbage: Iterable[Garbage]) -> set[str]:
    """Runs that could still commit the files: tombstoned files are dead without a revocation."""
    kinds = (GarbageKind.STAGING, GarbageKind.UNCOMMITTED)
    return {item.run_id for item in garbage if item.run_id and item.kind in kinds}


def _is_dead(item: Garbage, state: FolderState, run: Run) -> bool:
    if state.is_live(item.key):
        return False
    match item.kind:
        case GarbageKind.UNFINISHED:
            return True
        case GarbageKind.TOMBSTONED:
            return state.tombstone_of(item.key) is not None
        case GarbageKind.FOREIGN:
            return False
        case GarbageKind.STAGING | GarbageKind.UNCOMMITTED:
            # One that was committed and ended since it was looked at may have readers still.
            is_ended = state.tombstone_of(item.key) is not None
            return not is_ended and (item.run_id in state.revoked or item.run_id == run.run_id)


def _last_signs(store: ObjectStore, infos: list[ObjectInfo]) -> dict[str, int]:
    """Return the last write of each run: a run whose first files are old may be busy still."""
    run_ids = {run_id for info in infos if (run_id := layout.run_of(info.key)) is not None}
    staging = [f"{layout.STAGING}{run_id}/" for run_id in sorted(run_ids)]
    staged = (info for place in staging for info in store.list(place))
    signs: dict[str, int] = {}
    for info in chain(infos, staged):
        run_id = layout.run_of(info.key)
        if run_id is not None:
            signs[run_id] = max(info.modified, signs.get(run_id, info.modified))
    return signs


@dataclass(frozen=True)
class _Search:
    store: ObjectStore
    state: FolderState
    horizon: int
    """Objects older than this are past their grace."""
    last_signs: dict[str, int]

    def judge(self, infos: Iterable[ObjectInfo]) -> Iterator[Garbage]:
        is_past: dict[int, bool] = {}
        for info in infos:
            if not info.is_plain:
                yield Garbage(
                    GarbageKind.FOREIGN, Verdict.KEEP_FOREIGN, info.key, info.size, None,
                    "a link, pipe or device, which is not followed or opened",
                )  # fmt: skip
                continue
            if self.state.is_live(info.key):
                continue
            ended = self.state.tombstone_of(info.key)
            if ended is not None:
                if ended.seq not in is_past:
                    moment = ended_at(self.store, ended.seq, ended.deleted_at)
                    is_past[ended.seq] = moment < self.horizon
                yield self._aged(info, GarbageKind.TOMBSTONED, ended.rule, is_past[ended.seq])
            else:
                yield self._leftover(info)

    def _leftover(self, info: ObjectInfo) -> Garbage:
        if info.key.startswith(TEMPORARY_PREFIX):
            past = info.modified < self.horizon
            return self._aged(info, GarbageKind.UNFINISHED, "a write that never ended", past)
        run_id = layout.run_of(info.key)
        if run_id is None:
            return Garbage(
                GarbageKind.FOREIGN, Verdict.KEEP_FOREIGN, info.key, info.size, None,
                "not written by Snaploom, judging by its name",
            )  # fmt: skip
        staged = info.key.startswith(layout.STAGING)
        kind = GarbageKind.STAGING if staged else GarbageKind.UNCOMMITTED
        if run_id in self.state.revoked:
            return self._aged(info, kind, f"run {run_id} is revoked", True)
        past = self.last_signs[run_id] < self.horizon
        return self._aged(info, kind, f"run {run_id} did not commit it", past)

    def _aged(self, info: ObjectInfo, kind: GarbageKind, why: str, past: bool) -> Garbage:
        verdict = Verdict.REMOVE if past else Verdict.KEEP_YOUNG
        reason = why if past else f"{why}; kept, too young"
        return Garbage(kind, verdict, info.key, info.size, layout.run_of(info.key), reason)


# Removes a bounded number of unneeded files at the end of a run, found without listing.

VERSIONS_A_RUN = 100
"""Ended versions that one run removes at most. Usually one ends for one that is published; a
hundred take some seconds on an object store (a request or two each, 10 to 20 ms)."""
FILES_A_RUN = 2000
"""Files likewise; of one version more, when it has more."""
SILENCE = 86_400 * 1_000_000_000
"""Nanoseconds after which a run that wrote nothing into staging is taken for dead: a day. Nobody
asked for its revocation, as with `snaploom gc`, and no task of Spark writes one file as long."""


@dataclass(frozen=True)
class Swept:
    """Removed versions, and those that stay for now."""

    snapshots: int = 0
    """Ended versions whose files are removed."""
    files: int = 0
    """Files of them, and those that dead runs left in staging."""
    bytes: int = 0
    waiting: int = 0
    """Ended versions whose files stay for now."""


def store_present(store: ObjectStore, state: FolderState, now: EpochNanos) -> EpochNanos:
    """Return a time not later than the store's own, right after an entry was written."""
    newest = store.head(layout.manifest_key(state.seq))
    return now if newest is None else min(now, newest.modified)


def waiting(store: ObjectStore, state: FolderState) -> int:
    """Number of ended versions whose files may still be there."""
    return len(state.ended) - _position(store, state)


def sweep(
    folder: Folder,
    run: Run,
    present: EpochNanos,
    *,
    versions: int = VERSIONS_A_RUN,
    files: int = FILES_A_RUN,
    silence: int = SILENCE,
) -> Swept:
    """Remove files of ended versions, and staging of runs silent for `silence` nanoseconds.

    Raises:
        SnapshotsHeld: a tag or branch of the output's Iceberg table shows an ended version.
    """
    state = folder.read()
    store = folder.store
    position = _position(store, state)
    horizon = present - promised_grace(state, present)
    over = list(_within(files, _over(store, state, position, versions, horizon)))
    folder.forget(over, [file.path for ended in over for file in ended.files], run)
    for ended in over:
        # No name is ever live again (rule P10); what would be is not touched.
        store.delete([file.path for file in ended.files if not state.is_live(file.path)])
        run.reached(CrashPoint.DURING_DELETION)
    if over:
        _remember(store, state, position + len(over))
    staged = find_garbage(store, state, present, silence, layout.STAGING)
    old = [item for item in staged if item.verdict is Verdict.REMOVE]
    removed: tuple[Garbage, ...] = collect_garbage(folder, old[:files], run)
    gone = [file for ended in over for file in ended.files]
    return Swept(
        snapshots=len(over),
        files=len(gone) + len(removed),
        bytes=sum(file.bytes for file in gone) + sum(item.size for item in removed),
        waiting=len(state.ended) - position - len(over),
    )


def _over(
    store: ObjectStore, state: FolderState, position: int, count: int, horizon: int
) -> Iterator[TombstoneRecord]:
    """Ended versions from a position on, up to the first whose readers' grace has not passed."""
    is_past: dict[int, bool] = {}
    for ended in islice(state.ended, position, position + count):
        if ended.seq not in is_past:
            is_past[ended.seq] = ended_at(store, ended.seq, ended.deleted_at) < horizon
        if not is_past[ended.seq]:
            return
        yield state.records.tombstone(ended)


def _within(files: int, versions: Iterator[TombstoneRecord]) -> Iterator[TombstoneRecord]:
    """The first version, and those after it until the limit of files."""
    total = 0
    for version in versions:
        if total and total + len(version.files) > files:
            return
        total += len(version.files)
        yield version


class _Position(ApiModel):
    versions: Count
    seq: Count
    """Of the entry that ended the last of them."""
    deleted_at: Nanos
    """Recorded time of that."""


def _position(store: ObjectStore, state: FolderState) -> int:
    """Number of ended versions known to have no files; 0 if the hint is of another log."""
    position = read_hint(store, layout.SWEPT, _Position)
    if position is None or not 0 < position.versions <= len(state.ended):
        return 0
    last = state.ended[position.versions - 1]
    return (
        position.versions
        if (last.seq, last.deleted_at) == (position.seq, position.deleted_at)
        else 0
    )


def _remember(store: ObjectStore, state: FolderState, count: int) -> None:
    last = state.ended[count - 1]
    position = {"versions": count, "seq": last.seq, "deletedAt": last.deleted_at}
    write_hint(store, layout.SWEPT, position)
