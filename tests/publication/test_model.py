"""The protocol of publication, explored to the end: every order of steps, faults and crashes.

Two writers of the same snapshot, a pruner, a collector of garbage, a run that sweeps at its end,
and a reader run the real code on one store, step by step
(`support.storage.modelcheck`). In every state that can be reached:

- the files of every live snapshot are there, and whole;
- of a snapshot time one version is live at most, and the log has no gap or contradiction;
- files of ended snapshots are there until grace has passed;
- nothing that is not ours is gone;
- a run that reports a publication has published, and no other run has under that number;
- a reader has seen one whole manifest and every file of it, or files that ended and grace was over.

When all is over, however often somebody died or was left without answer, a writer that ended well
has a version in the log, and one more collection leaves nothing but what is live and what is not
ours.

`make prove` explores the larger combinations too (`SNAPLOOM_PROVE=1`).
"""

import json
import logging
from collections.abc import Hashable, Iterator
from dataclasses import replace
from functools import lru_cache, partial

import pytest
from support.runner.proofscope import IS_WHOLE
from support.storage.folders import IDENTITY, SETTINGS, a_target, agrees, day
from support.storage.modelcheck import (
    Actor,
    Content,
    Explorer,
    Mishaps,
    PlayedStore,
    Seen,
    is_quiet,
)

from snaploom.errors import ObjectNotFound, RunRevoked
from snaploom.files.objectstore import STORE_FAILURES, ObjectInfo
from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos, TimeOffset
from snaploom.output import documents, gc, layout
from snaploom.output import gc as runcleanup
from snaploom.output.documents import NumberedLog
from snaploom.output.entries import Tombstone
from snaploom.output.folder import Folder, Run, open_folder, prepare_folder
from snaploom.output.gc import Garbage, Verdict, collect_garbage, find_garbage, sweep
from snaploom.output.publication import Published, WriteResult, publish
from snaploom.output.state import FolderState, tombstone_of

FOREIGN = "data/day=0/notes.txt"
GRACE = 100
SOON, LATE = EpochNanos(10), EpochNanos(10_000)
"""All objects are of the time 1: before grace has passed, and after."""


def run_id(number: int) -> str:
    return f"20200101T000000000Z-{number:012x}"


def in_life(number: int, life: int) -> int:
    """Who begins again after a crash is another run."""
    return number + 16 * life


def a_run(number: int, clock: EpochNanos) -> Run:
    return Run(run_id(number), "0.0.0", lambda: clock)


def write(number: int, clock: EpochNanos, life: int, store: PlayedStore) -> Hashable:
    run = a_run(in_life(number, life), clock)

    def put(uri: str) -> WriteResult:
        staging = uri.removeprefix(store.uri)
        store.put_if_absent(f"{staging}part-0.parquet", run.run_id.encode())
        return WriteResult(rows=1, schema="{}")

    try:
        outcome = publish(open_folder(store), run, a_target(0), put, agrees, leftover_grace=GRACE)
    except (RunRevoked, *STORE_FAILURES) as error:
        return type(error).__name__
    kind = "published" if isinstance(outcome, Published) else "already"
    return (kind, outcome.record.run_id, outcome.record.seq)


def prune(life: int, store: PlayedStore) -> Hashable:
    def bury(state: FolderState) -> Tombstone | None:
        if day(0) not in state.live:
            return None
        seq = state.next_seq
        ended = tombstone_of(state.live[day(0)], seq=seq, rule="maxOldSnapshots", deleted_at=SOON)
        return Tombstone(
            seq=seq,
            run_id=run_id(in_life(7, life)),
            written_at=SOON,
            tool_version="0.0.0",
            snapshots=(ended,),
        )

    try:
        open_folder(store).log.commit(bury)
    except STORE_FAILURES as error:
        return type(error).__name__
    return "pruned"


def collect(clock: EpochNanos, life: int, store: PlayedStore) -> Hashable:
    folder = open_folder(store)
    try:
        garbage = find_garbage(store, folder.log.read(), clock, GRACE)
        collect_garbage(folder, garbage, a_run(in_life(8, life), clock))
    except STORE_FAILURES as error:
        return type(error).__name__
    return "collected"


def sweep_up(clock: EpochNanos, life: int, store: PlayedStore) -> Hashable:
    """The last step of a run that has published something else."""
    try:
        sweep(open_folder(store), a_run(in_life(6, life), clock), clock, silence=GRACE)
    except STORE_FAILURES as error:
        return type(error).__name__
    return "swept"


def read(life: int, store: PlayedStore) -> Hashable:
    """What was pinned, and which of its files were not there."""
    state = open_folder(store).log.read()
    missing = []
    for record in state.snapshots:
        for file in record.files:
            try:
                assert store.get(file.path) == record.run_id.encode()
            except ObjectNotFound:
                missing.append((record.seq, file.path))
    return ("read", state.seq, tuple(missing))


WRITER, RIVAL = Actor("writer", partial(write, 1, SOON)), Actor("rival", partial(write, 2, SOON))
HASTY = Actor("hasty", partial(write, 3, LATE))
"""A writer whose clock is far ahead: it takes everybody's files for old ones."""
PRUNER, READER = Actor("pruner", prune), Actor("reader", read)
YOUNG = Actor("collector", partial(collect, SOON))
OLD = Actor("late collector", partial(collect, LATE))
SWEEPER = Actor("late sweeper", partial(sweep_up, LATE))
EARLY = Actor("sweeper", partial(sweep_up, SOON))


def committed(content: Content) -> Iterator[dict[str, object]]:
    """The log from its raw documents: no gap, and nothing after the first that is not there."""
    names = sorted(key for key in content if key.startswith(layout.MANIFEST))
    for position, name in enumerate(names, start=1):
        entry = json.loads(content[name])
        assert name == layout.manifest_key(position)
        assert entry["seq"] == position
        yield entry


class Invariants:
    """What must hold in every state."""

    def __init__(self, actors: tuple[Actor, ...]) -> None:
        names = {actor.name for actor in actors}
        self._is_grace_over = not names.isdisjoint((OLD.name, SWEEPER.name))
        self._look = lru_cache(maxsize=None)(self._look_at_store)
        self._clean = lru_cache(maxsize=None)(self._clean_up)
        self._contents: dict[int, Content] = {}

    def check(self, seen: Seen) -> None:
        number = id(seen.content)
        self._contents[number] = seen.content
        publishers, ended = self._look(number)
        for outcome in seen.outcomes.values():
            match outcome:
                case ("published", run, seq):
                    assert publishers.get(seq) == run
                case ("already", run, seq):
                    assert publishers.get(seq) == run
                case "RunRevoked" | "pruned" | "collected" | "swept":
                    pass
                case ("read", _, missing):
                    assert self._is_grace_over or not missing
                    assert {seq for seq, _ in missing} <= ended
                case _:
                    assert not seen.is_faultless, outcome
        if seen.is_over:
            self._clean(number)
            if seen.is_faultless and not seen.has_crashed:
                assert not any(key.startswith(layout.STAGING) for key in seen.content)

    def _clean_up(self, number: int) -> None:
        """Whatever was left behind, one more collection takes away, and nothing else."""
        store = PlayedStore((), self._contents[number])
        assert collect(LATE, 0, store) == "collected"
        left = {info.key for info in store.list(layout.DATA)}
        assert left == {FOREIGN, *open_folder(store).log.read().live_files}

    def _look_at_store(self, number: int) -> tuple[dict[int, str], set[int]]:
        """Who published by which entry, and which of those have ended."""
        content = self._contents[number]
        assert FOREIGN in content
        live: dict[str, int] = {}
        publishers: dict[int, str] = {}
        files: dict[int, list[str]] = {}
        revoked: set[str] = set()
        for entry in committed(content):
            if entry["action"] == "publish":
                snapshot, seq = entry["snapshot"], entry["seq"]
                assert snapshot["time"] not in live
                assert entry["runId"] not in revoked
                live[snapshot["time"]] = seq
                publishers[seq] = entry["runId"]
                files[seq] = [file["path"] for file in snapshot["files"]]
            elif entry["action"] == "tombstone":
                for gone in entry["snapshots"]:
                    assert live.pop(gone["time"]) == gone["publishedSeq"]
            elif entry["action"] == "revoke":
                revoked |= set(entry["runIds"])
        for seq, paths in files.items():
            if seq in live.values() or not self._is_grace_over:
                assert paths
                assert all(content.get(path) == publishers[seq].encode() for path in paths)
        return publishers, publishers.keys() - live.values()


@pytest.fixture
def content(monkeypatch: pytest.MonkeyPatch) -> Iterator[Content]:
    """A folder that is begun, with a foreign file at the place of the snapshot."""
    monkeypatch.setattr(documents, "pause", lambda attempt: None)
    monkeypatch.setattr(layout.secrets, "token_hex", lambda count: "0" * (2 * count))
    store = open_store("memory:", create=True)
    grace = TimeOffset(nano=GRACE)
    prepare_folder(store, SETTINGS, IDENTITY, a_run(9, SOON), reader_grace=grace)
    store.put(FOREIGN, b"mine")
    logging.disable()
    yield {info.key: store.get(info.key) for info in store.list("")}
    logging.disable(logging.NOTSET)


def with_snapshot(content: Content) -> Content:
    store = PlayedStore((), content)
    write(4, SOON, 0, store)
    return dict(store._content)


Combination = tuple[bool, Mishaps, tuple[Actor, ...]]
"""Whether the snapshot is published before, what may go wrong, and who acts."""
COMBINATIONS: dict[str, Combination] = {
    "two writers, two faults": (False, Mishaps(2), (WRITER, RIVAL)),
    "two writers, a fault and a crash": (False, Mishaps(1, 1), (WRITER, RIVAL)),
    "a writer and one whose clock is far ahead": (False, Mishaps(2), (WRITER, HASTY)),
    "a writer and a late collector": (False, Mishaps(2), (WRITER, OLD)),
    "a writer and a late collector, a fault and a crash": (False, Mishaps(1, 1), (WRITER, OLD)),
    "two writers and a late collector": (False, Mishaps(), (WRITER, RIVAL, OLD)),
    "a pruner, a late collector and a reader": (True, Mishaps(1, 2), (PRUNER, OLD, READER)),
    "a pruner, a collector and a reader": (True, Mishaps(1, 2), (PRUNER, YOUNG, READER)),
    "a writer, a pruner and a reader": (True, Mishaps(1, 1), (WRITER, PRUNER, READER)),
    "a writer, a hasty one and a pruner, a crash": (
        True,
        Mishaps(crashes=1),
        (WRITER, HASTY, PRUNER),
    ),
    "a writer and a late sweeper, a fault": (False, Mishaps(1), (WRITER, SWEEPER)),
    "a pruner, a late sweeper and a reader": (True, Mishaps(1, 1), (PRUNER, SWEEPER, READER)),
    "a pruner, a sweeper and a reader": (True, Mishaps(1, 1), (PRUNER, EARLY, READER)),
}
LARGER: dict[str, Combination] = {
    "a writer and a late sweeper, a fault and a crash": (False, Mishaps(1, 1), (WRITER, SWEEPER)),
    "two writers, three faults": (False, Mishaps(3), (WRITER, RIVAL)),
    "two writers, two crashes": (False, Mishaps(crashes=2), (WRITER, RIVAL)),
    "two writers, two faults and a crash": (False, Mishaps(2, 1), (WRITER, RIVAL)),
    "a writer and a late collector, two crashes": (False, Mishaps(crashes=2), (WRITER, OLD)),
    "a writer, a hasty one and a pruner, a fault": (True, Mishaps(1), (WRITER, HASTY, PRUNER)),
    "two writers and a late collector, a fault": (False, Mishaps(1), (WRITER, RIVAL, OLD)),
    "a writer, a pruner, a late collector and a reader, a crash": (
        True,
        Mishaps(crashes=1),
        (WRITER, PRUNER, OLD, READER),
    ),
    "a writer, a pruner, a late sweeper and a late collector": (
        True,
        Mishaps(),
        (WRITER, PRUNER, SWEEPER, OLD),
    ),
    "two writers, a pruner and a reader, a crash": (
        True,
        Mishaps(crashes=1),
        (WRITER, RIVAL, PRUNER, READER),
    ),
}
if IS_WHOLE:
    COMBINATIONS |= LARGER


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", COMBINATIONS)
def test_invariants_hold_in_every_state(content, name, record_property):
    is_published, mishaps, actors = COMBINATIONS[name]
    first = with_snapshot(content) if is_published else content
    explorer = Explorer(first, actors, mishaps, is_quiet)
    explored = explorer.explore(Invariants(actors).check)
    print(f"{name}: {explored.states:,} states by {explored.steps:,} steps")
    record_property("states", explored.states)
    assert explored.ends


def test_a_collector_that_revokes_nobody_is_caught(content, monkeypatch):
    """The explorer finds the fault that rule P11 is there for."""
    monkeypatch.setattr(gc, "_is_dead", lambda item, state, run: True)
    monkeypatch.setattr(Folder, "revoke", lambda folder, run_ids, run: folder.log.read())
    explorer = Explorer(content, (WRITER, OLD), Mishaps(), is_quiet)
    with pytest.raises(AssertionError):
        explorer.explore(Invariants((WRITER, OLD)).check)


@pytest.mark.parametrize("actors", [(PRUNER, EARLY, READER), (WRITER, SWEEPER)], ids=len)
def test_a_sweeper_that_does_not_wait_or_revoke_is_caught(content, monkeypatch, actors):
    monkeypatch.setattr(runcleanup, "ended_at", lambda store, seq, run_id: -GRACE)
    monkeypatch.setattr(gc, "_is_dead", lambda item, state, run: True)
    monkeypatch.setattr(Folder, "revoke", lambda folder, run_ids, run: folder.log.read())
    first = with_snapshot(content) if PRUNER in actors else content
    with pytest.raises(AssertionError):
        Explorer(first, actors, Mishaps(), is_quiet).explore(Invariants(actors).check)


def test_a_commit_that_asks_nobody_is_caught(content, monkeypatch):
    """The explorer finds a put whose answer is believed when none came (rule P4)."""
    monkeypatch.setattr(documents, "PUT_ATTEMPTS", 1)
    monkeypatch.setattr(NumberedLog, "_holds", lambda log, key, document: True)
    explorer = Explorer(content, (WRITER, RIVAL), Mishaps(faults=1), is_quiet)
    with pytest.raises(AssertionError):
        explorer.explore(Invariants((WRITER, RIVAL)).check)


def test_a_collector_that_forgets_whom_it_revoked_is_caught_by_a_crash(content, monkeypatch):
    """A run that dies between revocation and deletion leaves files that nothing removes."""
    judge = gc._Search._leftover

    def forgetful(search: gc._Search, info: ObjectInfo) -> Garbage:
        found = judge(search, info)
        is_revoked = found.run_id in search.state.revoked
        return replace(found, verdict=Verdict.KEEP_YOUNG) if is_revoked else found

    monkeypatch.setattr(gc._Search, "_leftover", forgetful)
    actors = (WRITER, OLD)
    Explorer(content, actors, Mishaps(), is_quiet).explore(Invariants(actors).check)
    with pytest.raises(AssertionError):
        Explorer(content, actors, Mishaps(crashes=1), is_quiet).explore(Invariants(actors).check)
