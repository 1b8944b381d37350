"""Any order of publishing, pruning, collecting, racing and dying, against a plain model.

The model knows only which run's version of each snapshot should be live. The folder's state is
read from the raw JSON of the manifest, not through the code under test.
"""

import json
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from support.storage.faultystore import DyingStore, Fault, FaultyStore, Killed, times
from support.storage.folders import (
    BEFORE_THE_COMMIT,
    DAY,
    a_folder,
    a_run,
    bury,
    day,
    keys,
    now,
    published,
    replaced,
    revoke,
)

from snaploom.errors import FolderNotWritable, RunRevoked, SnapshotChanged
from snaploom.files.objectstore import ObjectStore
from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos, parse_instant
from snaploom.output import documents as numberedlog
from snaploom.output.entries import FileRecord
from snaploom.output.folder import CrashPoint, Run, open_folder
from snaploom.output.gc import collect_garbage, find_garbage
from snaploom.output.manifest import CommitOutcomeUnknown
from snaploom.output.publication import AlreadyPublished

FOREIGN = "data/day=1/notes.txt"

numbers = st.integers(0, 2)
points = st.sampled_from(BEFORE_THE_COMMIT)
PROMOTING = (CrashPoint.DURING_PROMOTION, CrashPoint.AFTER_PROMOTION)


def committed_versions(store: ObjectStore) -> Iterator[dict[int, tuple[str, tuple[str, ...]]]]:
    """Live versions (run, files) by time after each entry, folded from the raw documents."""
    live: dict[int, tuple[str, tuple[str, ...]]] = {}
    documents = sorted(info.key for info in store.list("metadata/manifest/"))
    for position, key in enumerate(documents, start=1):
        entry = json.loads(store.get(key))
        assert entry["seq"] == position
        if entry["action"] == "replace":
            ended = entry["replaced"]
            time = parse_instant(ended["time"])
            assert live.pop(time)[1] == tuple(file["path"] for file in ended["files"])
        if entry["action"] in ("publish", "replace"):
            snapshot = entry["snapshot"]
            time = parse_instant(snapshot["time"])
            assert time not in live
            live[time] = (snapshot["runId"], tuple(file["path"] for file in snapshot["files"]))
        for ended in entry.get("snapshots", []):
            del live[parse_instant(ended["time"])]
        yield dict(live)


class Protocol(RuleBasedStateMachine):
    """Writers, replacers, a pruner and collectors on one folder."""

    def __init__(self) -> None:
        super().__init__()
        self.store = open_store("memory:", create=True)
        a_folder(self.store)
        self.store.put(FOREIGN, b"mine")
        self.expected: dict[int, str] = {}
        """Run whose version is live, by number of the snapshot."""
        self.kept: set[str] = set()
        """Files of tombstoned snapshots, until a collection long after."""

    @rule(number=numbers, files=st.integers(0, 2))
    def publish(self, number: int, files: int) -> None:
        run = a_run()
        outcome = published(open_folder(self.store), number, run, files)
        assert isinstance(outcome, AlreadyPublished) == (number in self.expected)
        assert outcome.record.run_id == self.expected.setdefault(number, run.run_id)

    @rule(number=numbers)
    def publish_with_a_clock_far_ahead(self, number: int) -> None:
        """Takes everybody's unfinished files for old ones."""
        run = a_run(start=now() + 365 * DAY)
        published(open_folder(self.store), number, run)
        self.expected.setdefault(number, run.run_id)

    @rule(number=numbers, fault=st.sampled_from(Fault), count=st.integers(1, 6))
    def publish_with_faults_at_the_commit(self, number: int, fault: Fault, count: int) -> None:
        faulty = FaultyStore(self.store)
        folder = open_folder(faulty)
        faulty.faults = times(count, fault, "put_if_absent", "manifest/")
        run = a_run()
        was_live = number in self.expected
        try:
            outcome = published(folder, number, run)
        except (CommitOutcomeUnknown, FolderNotWritable):
            assert fault is not Fault.ANSWER_LOST
            assert fault is Fault.REFUSED or count >= numberedlog.PUT_ATTEMPTS
            assert not was_live
        else:
            assert isinstance(outcome, AlreadyPublished) == was_live
            self.expected.setdefault(number, run.run_id)

    @rule(number=numbers, writes_left=st.integers(1, 12), is_done=st.booleans())
    def publish_and_die(self, number: int, writes_left: int, is_done: bool) -> None:
        run = a_run()
        try:
            published(open_folder(DyingStore(self.store, writes_left, is_done)), number, run)
        except Killed:
            committed = (*committed_versions(self.store),)[-1]
            if number not in self.expected and day(number) in committed:
                self.expected[number] = run.run_id
        else:
            self.expected.setdefault(number, run.run_id)

    @rule(number=numbers, files=st.integers(0, 2))
    def replace(self, number: int, files: int) -> None:
        if number not in self.expected:
            return
        run = a_run()
        outcome = replaced(open_folder(self.store), number, run, files)
        assert outcome.ended.rule == "REPLACED"
        self._replace_in_the_model(number, run, outcome.ended.files)

    @rule(number=numbers, fault=st.sampled_from(Fault), count=st.integers(1, 6))
    def replace_with_faults_at_the_commit(self, number: int, fault: Fault, count: int) -> None:
        if number not in self.expected:
            return
        faulty = FaultyStore(self.store)
        folder = open_folder(faulty)
        faulty.faults = times(count, fault, "put_if_absent", "manifest/")
        run = a_run()
        try:
            outcome = replaced(folder, number, run)
        except (CommitOutcomeUnknown, FolderNotWritable):
            assert fault is not Fault.ANSWER_LOST
            assert fault is Fault.REFUSED or count >= numberedlog.PUT_ATTEMPTS
        else:
            self._replace_in_the_model(number, run, outcome.ended.files)

    @rule(number=numbers, writes_left=st.integers(1, 12), is_done=st.booleans())
    def replace_and_die(self, number: int, writes_left: int, is_done: bool) -> None:
        if number not in self.expected:
            return
        run = a_run()
        old = open_folder(self.store).log.read().live[day(number)].files
        with suppress(Killed):
            replaced(open_folder(DyingStore(self.store, writes_left, is_done)), number, run)
        if self._live()[day(number)][0] == run.run_id:
            self._replace_in_the_model(number, run, old)

    @rule(
        number=numbers,
        point=points,
        rival=numbers,
        meanwhile=st.lists(
            st.sampled_from(["publish", "replace", "prune", "collect", "revoke"]), max_size=3
        ),
    )
    def replace_while_others_act(
        self, number: int, point: CrashPoint, rival: int, meanwhile: list[str]
    ) -> None:
        if number not in self.expected:
            return
        folder = open_folder(self.store)
        before = folder.log.read().live[day(number)]
        run, revoked = self._disturbed(number, point, rival, meanwhile)
        try:
            outcome = replaced(folder, number, run)
        except RunRevoked:
            assert any(revoked)
        except SnapshotChanged:
            assert self._live().get(day(number), ("",))[0] != before.run_id
        else:
            assert not any(revoked)
            assert outcome.ended.files == before.files
            self._replace_in_the_model(number, run, outcome.ended.files)

    def _disturbed(
        self, number: int, point: CrashPoint, rival: int, meanwhile: list[str]
    ) -> tuple[Run, list[bool]]:
        """A run during which others act once, and which of their actions revoke it."""
        waiting, revoked = [point], list[bool]()

        def pause(reached: CrashPoint) -> None:
            if waiting == [reached]:
                waiting.clear()
                for action in meanwhile:
                    revoked.append(self._revokes(action, run, number, point, rival))

        run = a_run(pause)
        return run, revoked

    def _revokes(self, action: str, run: Run, number: int, point: CrashPoint, rival: int) -> bool:
        """Act as another does while a run waits; return whether that revokes the run."""
        if action == "hasty":
            was_live = rival in self.expected
            self.publish_with_a_clock_far_ahead(rival)
            return point in PROMOTING and rival == number and not was_live
        if action == "collect":
            self.collect_long_after()
            return point is not CrashPoint.BEFORE_STAGING
        if action == "revoke":
            revoke(open_folder(self.store), run)
            return True
        acts = {
            "publish": lambda: self.publish(rival, 2),
            "replace": lambda: self.replace(rival, 1),
            "prune": lambda: self.prune(rival),
        }
        acts[action]()
        return False

    def _replace_in_the_model(
        self, number: int, run: Run, old_files: tuple[FileRecord, ...]
    ) -> None:
        self.expected[number] = run.run_id
        self.kept |= {file.path for file in old_files}

    @rule(
        number=numbers,
        point=points,
        rival=numbers,
        meanwhile=st.lists(
            st.sampled_from(["publish", "hasty", "prune", "collect", "revoke", "replace"]),
            max_size=3,
        ),
    )
    def publish_while_others_act(
        self, number: int, point: CrashPoint, rival: int, meanwhile: list[str]
    ) -> None:
        run, revoked = self._disturbed(number, point, rival, meanwhile)
        try:
            outcome = published(open_folder(self.store), number, run)
        except RunRevoked:
            assert any(revoked)
        else:
            assert isinstance(outcome, AlreadyPublished) == (number in self.expected)
            assert isinstance(outcome, AlreadyPublished) or not any(revoked)
            self.expected.setdefault(number, run.run_id)

    @rule(number=numbers)
    def prune(self, number: int) -> None:
        if number not in self.expected:
            return
        folder = open_folder(self.store)
        self.kept |= {file.path for file in folder.log.read().live[day(number)].files}
        bury(folder, number)
        del self.expected[number]

    @rule(writes_left=st.integers(1, 6), is_done=st.booleans(), is_late=st.booleans())
    def collect_and_die(self, writes_left: int, is_done: bool, is_late: bool) -> None:
        with suppress(Killed):
            self._collect(DyingStore(self.store, writes_left, is_done), DAY if is_late else 0)
        if is_late:
            self.kept.clear()

    @rule()
    def collect_at_once(self) -> None:
        self._collect(self.store, 0)

    @rule()
    def collect_long_after(self) -> None:
        self._collect(self.store, DAY)
        self.kept.clear()
        live = {path for _, files in self._live().values() for path in files}
        assert keys(self.store) == live | {FOREIGN}

    def _collect(self, store: ObjectStore, after: int) -> None:
        folder = open_folder(store)
        later = EpochNanos(now() + after)
        garbage = find_garbage(store, folder.log.read(), later, DAY // 2)
        collect_garbage(folder, garbage, a_run())

    def _live(self) -> dict[int, tuple[str, tuple[str, ...]]]:
        return [*committed_versions(self.store)][-1]

    @invariant()
    def live_versions_are_those_of_the_model(self) -> None:
        live = {time: run_id for time, (run_id, _) in self._live().items()}
        assert live == {day(number): run_id for number, run_id in self.expected.items()}

    @invariant()
    def files_of_live_snapshots_are_there_and_whole(self) -> None:
        for run_id, files in self._live().values():
            for path in files:
                assert run_id in self.store.get(path).decode()

    @invariant()
    def files_of_tombstones_are_there_within_grace(self) -> None:
        assert self.kept <= keys(self.store)

    @invariant()
    def what_is_not_ours_is_untouched(self) -> None:
        assert self.store.get(FOREIGN) == b"mine"

    @invariant()
    def readers_see_what_the_documents_contain(self) -> None:
        state = open_folder(self.store).log.read()
        live = {r.time: (r.run_id, tuple(f.path for f in r.files)) for r in state.snapshots}
        assert live == self._live()


def test_protocol_holds_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numberedlog, "FIRST_PAUSE", 0.0)
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Protocol,
        settings=settings(
            max_examples=150,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
