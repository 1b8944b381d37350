"""Finds what may be removed from an output folder, and removes it.

Three rules keep this harmless however late, twice or wrongly timed it runs:

- only what is proven ours is garbage: the folder has our marker, and the name has a run id in the
  place where we put one, or lies where only we write;
- before files of a run are touched the run is revoked by an entry of the log (rule P11), and
  what is referenced is judged again by the very state that holds the revocation: from then on no
  entry can make one of them live, since names are never reused (rule P10);
- ages only decide what is kept for now. They are the store's own (rule P18); a clock that is
  ahead can end a living run, which then fails and is run again, but loses nothing published.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

from snaploom.models.common import TimeOffset
from snaploom.models.times import EpochNanos
from snaploom.planning.calendar import minus_bounded
from snaploom.storage import layout
from snaploom.storage.entries import TombstoneRecord
from snaploom.storage.folder import Folder
from snaploom.storage.objectstore import TEMPORARY_PREFIX, ObjectInfo, ObjectStore
from snaploom.storage.state import FolderState
from snaploom.storage.writeridentity import CrashPoint, Run

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
    infos = [info for place in places for info in store.list(place)]
    search = _Search(store, state, now - grace, _last_signs(store, infos))
    return tuple(sorted(search.judge(infos), key=lambda garbage: garbage.key))


def collect_garbage(folder: Folder, garbage: Iterable[Garbage], run: Run) -> tuple[Garbage, ...]:
    """Remove garbage with the verdict REMOVE after revoking its runs; returns the removed.

    Raises:
        FolderNotWritable: the folder refuses the revocation or a deletion.
    """
    doomed = [item for item in garbage if item.verdict is Verdict.REMOVE]
    if not doomed:
        return ()
    state = folder.revoke(_writers(doomed) - {run.run_id}, run)
    run.reached(CrashPoint.AFTER_REVOCATION)
    dead = [item for item in doomed if _is_dead(item, state, run)]
    folder.forget(_versions(dead, state), run)
    removed = []
    for item in dead:
        folder.store.delete([item.key])
        removed.append(item)
        run.reached(CrashPoint.DURING_DELETION)
    for run_id in sorted(_writers(g for g in removed if g.kind is GarbageKind.STAGING)):
        folder.store.prune(f"{layout.STAGING}{run_id}/")
    return tuple(removed)


def promised_grace(state: FolderState, present: EpochNanos) -> int:
    """Nanoseconds for which readers may use a pinned manifest, up to a moment."""
    grace = state.reader_grace or DEFAULT_READER_GRACE
    return present - minus_bounded(present, grace, "UTC")


def ended_at(store: ObjectStore, seq: int, recorded: EpochNanos) -> int:
    """When an entry that ended versions was written, by the store's clock if known (rule P18)."""
    info = store.head(layout.manifest_key(seq))
    return info.modified if info is not None else recorded


def _versions(garbage: Iterable[Garbage], state: FolderState) -> list[TombstoneRecord]:
    keys = (item.key for item in garbage if item.kind is GarbageKind.TOMBSTONED)
    found = filter(None, map(state.tombstone_of, keys))
    return list({one.published_seq: one for one in found}.values())


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
    """When each run last wrote anything: a run whose first files are old may be busy still."""
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
