"""The protocol of publication, explored to the end: every order of steps, faults and crashes.

Two writers of the same snapshot, a pruner, a collector of garbage and a reader run the real code on
one store, step by step (`support.modelcheck`). In every state that can be reached:

- the files of every live snapshot are there, and whole;
- of a snapshot time one version is live at most, and the log has no gap or contradiction;
- files of ended snapshots are there until grace has passed;
- nothing that is not ours is gone;
- who says that he published has published, and nobody else has under that number;
- a reader has seen one whole manifest and every file of it, or files that ended and grace was over.

`make prove` explores the larger combinations too (`SNAPLOOM_PROVE=1`).
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Hashable, Iterator
from functools import lru_cache, partial

import pytest
from support.folders import a_folder, a_target, agrees, day
from support.modelcheck import Actor, Content, Explorer, PlayedStore, Seen, is_quiet

from snaploom.errors import ObjectNotFound, RunRevoked
from snaploom.models.times import EpochNanos
from snaploom.storage import gc, layout, manifest
from snaploom.storage.entries import Tombstone
from snaploom.storage.folder import open_folder
from snaploom.storage.gc import collect_garbage, find_garbage
from snaploom.storage.manifest import ManifestLog
from snaploom.storage.objectstore import STORE_FAILURES
from snaploom.storage.publication import Published, WriteResult, publish
from snaploom.storage.run import Run
from snaploom.storage.state import FolderState, tombstone_of
from snaploom.storage.stores import open_store

FOREIGN = "data/day=0/notes.txt"
GRACE = 100
SOON, LATE = EpochNanos(10), EpochNanos(10_000)
"""All objects are of the time 1: before grace has passed, and after."""


def run_id(number: int) -> str:
    return f"20200101T000000000Z-{number:012x}"


def a_run(number: int, clock: EpochNanos) -> Run:
    return Run(run_id(number), "0.0.0", lambda: clock)


def write(number: int, clock: EpochNanos, store: PlayedStore) -> Hashable:
    run = a_run(number, clock)

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


def prune(store: PlayedStore) -> Hashable:
    def bury(state: FolderState) -> Tombstone | None:
        if day(0) not in state.live:
            return None
        seq = state.next_seq
        ended = tombstone_of(state.live[day(0)], seq=seq, rule="maxOldSnapshots", deleted_at=SOON)
        return Tombstone(
            seq=seq, run_id=run_id(7), written_at=SOON, tool_version="0.0.0", snapshots=(ended,)
        )

    try:
        open_folder(store).log.commit(bury)
    except STORE_FAILURES as error:
        return type(error).__name__
    return "pruned"


def collect(clock: EpochNanos, store: PlayedStore) -> Hashable:
    folder = open_folder(store)
    try:
        garbage = find_garbage(store, folder.log.read(), clock, GRACE)
        collect_garbage(folder, garbage, a_run(8, clock))
    except STORE_FAILURES as error:
        return type(error).__name__
    return "collected"


def read(store: PlayedStore) -> Hashable:
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
        self._is_grace_over = OLD.name in names
        self._look = lru_cache(maxsize=None)(self._look_at_store)
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
                case "RunRevoked" | "pruned" | "collected":
                    pass
                case ("read", _, missing):
                    assert self._is_grace_over or not missing
                    assert {seq for seq, _ in missing} <= ended
                case _:
                    assert not seen.is_faultless, outcome
        if seen.is_over and seen.is_faultless:
            assert not any(key.startswith(layout.STAGING) for key in seen.content)

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
    """A folder that is begun, with a stranger's file where the snapshot is to be."""
    monkeypatch.setattr(manifest, "_pause", lambda attempt: None)
    monkeypatch.setattr(layout.secrets, "token_hex", lambda count: "0" * (2 * count))
    store = open_store("memory:", create=True)
    a_folder(store, a_run(9, SOON))
    store.put(FOREIGN, b"mine")
    logging.disable()
    yield {info.key: store.get(info.key) for info in store.list("")}
    logging.disable(logging.NOTSET)


def with_snapshot(content: Content) -> Content:
    """The same with the snapshot published."""
    store = PlayedStore((), content)
    write(4, SOON, store)
    return dict(store._content)


Combination = tuple[bool, int, tuple[Actor, ...]]
"""Whether the snapshot is published before, how many faults there may be, and who acts."""
COMBINATIONS: dict[str, Combination] = {
    "two writers, two faults": (False, 2, (WRITER, RIVAL)),
    "a writer and one whose clock is far ahead": (False, 2, (WRITER, HASTY)),
    "a writer and a late collector": (False, 2, (WRITER, OLD)),
    "two writers and a late collector": (False, 0, (WRITER, RIVAL, OLD)),
    "a pruner, a late collector and a reader": (True, 2, (PRUNER, OLD, READER)),
    "a pruner, a collector and a reader": (True, 2, (PRUNER, YOUNG, READER)),
    "a writer, a pruner and a reader": (True, 1, (WRITER, PRUNER, READER)),
}
LARGER: dict[str, Combination] = {
    "two writers, three faults": (False, 3, (WRITER, RIVAL)),
    "a writer, a hasty one, and a pruner": (True, 1, (WRITER, HASTY, PRUNER)),
    "two writers, a late collector, a fault": (False, 1, (WRITER, RIVAL, OLD)),
    "a writer, a pruner, a late collector and a reader": (True, 0, (WRITER, PRUNER, OLD, READER)),
    "two writers, a pruner and a reader": (True, 0, (WRITER, RIVAL, PRUNER, READER)),
}
if os.environ.get("SNAPLOOM_PROVE"):
    COMBINATIONS |= LARGER


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", COMBINATIONS)
def test_invariants_hold_in_every_state(
    content: Content, name: str, record_property: Callable[[str, object], None]
) -> None:
    is_published, faults, actors = COMBINATIONS[name]
    first = with_snapshot(content) if is_published else content
    explorer = Explorer(first, actors, faults, is_quiet)
    explored = explorer.explore(Invariants(actors).check)
    print(f"{name}: {explored.states:,} states by {explored.steps:,} steps")
    record_property("states", explored.states)
    assert explored.ends


def test_a_collector_that_revokes_nobody_is_caught(
    content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The explorer finds the fault that ruling D27 is there for."""
    monkeypatch.setattr(gc, "_is_dead", lambda item, state, run: True)
    monkeypatch.setattr(gc, "_revoke", lambda folder, run_ids, run: folder.log.read())
    explorer = Explorer(content, (WRITER, OLD), 0, is_quiet)
    with pytest.raises(AssertionError):
        explorer.explore(Invariants((WRITER, OLD)).check)


def test_a_commit_that_asks_nobody_is_caught(
    content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The explorer finds a put whose answer is believed when none came (ruling D26)."""
    monkeypatch.setattr(manifest, "PUT_ATTEMPTS", 1)
    monkeypatch.setattr(ManifestLog, "_is_ours", lambda log, key, document: True)
    explorer = Explorer(content, (WRITER, RIVAL), 1, is_quiet)
    with pytest.raises(AssertionError):
        explorer.explore(Invariants((WRITER, RIVAL)).check)
