"""The log: commits, races, lost answers, checkpoints, damage."""

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.storage.faultystore import Fault, FaultyStore, times
from support.storage.folders import START, a_folder, a_run, day, published

from snaploom.errors import FolderNotWritable, FormatTooNew, ManifestCorrupt, ObjectNotFound
from snaploom.files.objectstore import ObjectStore
from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos
from snaploom.output import checkpoints, layout, manifest
from snaploom.output.checkpoints import CHECKPOINT_EVERY
from snaploom.output.documents import corrupt
from snaploom.output.entries import Claim
from snaploom.output.manifest import CommitOutcomeUnknown, ManifestLog
from snaploom.output.state import EMPTY, FolderState


@pytest.fixture(params=[pytest.param("local", marks=pytest.mark.slow), "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    return open_store(str(tmp_path) if request.param == "local" else "memory:", create=True)


def claim(scope: str) -> object:
    run = a_run()

    def build(state: FolderState) -> Claim:
        return Claim(
            seq=state.next_seq,
            run_id=run.run_id,
            written_at=EpochNanos(START),
            tool_version="0.0.0",
            scope=scope,
            seconds=60,
        )

    return build


def commit(log: ManifestLog, scope: str = "work") -> FolderState:
    return log.commit(claim(scope))  # type: ignore[arg-type]


def test_log_without_entries_is_the_empty_state(store: ObjectStore) -> None:
    assert ManifestLog(store).read() == EMPTY


def test_commit_is_seen_by_other_readers(store: ObjectStore) -> None:
    log, other = ManifestLog(store), ManifestLog(store)
    other.read()
    assert commit(log, "a").seq == 1
    assert other.read() == log.read()
    assert set(other.read().claims) == {"a"}


def test_read_at_a_sequence_number_stays_as_it_was(store: ObjectStore) -> None:
    log = ManifestLog(store)
    for scope in "abc":
        commit(log, scope)
    for reader in (log, ManifestLog(store)):
        assert set(reader.read(at=2).claims) == {"a", "b"}
        assert reader.read(at=0) == EMPTY
        assert reader.read().seq == 3
        with pytest.raises(ObjectNotFound, match="no manifest entry 4"):
            reader.read(at=4)


def test_commit_of_nothing_writes_nothing(store: ObjectStore) -> None:
    assert ManifestLog(store).commit(lambda state: None) == EMPTY
    assert list(store.list("")) == []


def test_loser_of_a_race_builds_again_on_the_winner(store: ObjectStore) -> None:
    log, rival = ManifestLog(store), ManifestLog(store)
    seen: list[int] = []

    def build(state: FolderState) -> Claim:
        seen.append(state.seq)
        if len(seen) == 1:
            commit(rival, "rival")
        return claim("mine")(state)  # type: ignore[operator, no-any-return]

    assert set(log.commit(build).claims) == {"rival", "mine"}
    assert seen == [0, 1]


def test_twenty_writers_get_a_number_each(store: ObjectStore) -> None:
    with ThreadPoolExecutor(20) as pool:
        states = list(pool.map(lambda i: commit(ManifestLog(store), str(i)), range(20)))
    assert sorted(state.seq for state in states) == list(range(1, 21))
    assert len(ManifestLog(store).read().claims) == 20


@pytest.mark.parametrize("fault", [Fault.REQUEST_LOST, Fault.ANSWER_LOST])
def test_commit_survives_a_put_without_answer_and_counts_once(store, fault):
    faulty = FaultyStore(store)
    faulty.faults = times(2, fault, "put_if_absent", "manifest/")
    assert commit(ManifestLog(faulty)).seq == 1
    assert ManifestLog(store).read().seq == 1


def test_lost_request_that_another_writer_overtakes_is_a_lost_race(store: ObjectStore) -> None:
    faulty = FaultyStore(store)

    def overtaken(operation: str, key: str) -> Fault | None:
        if operation == "put_if_absent" and key.endswith("1.json"):
            faulty.faults = lambda operation, key: None
            commit(ManifestLog(store), "rival")
            return Fault.REQUEST_LOST
        return None

    faulty.faults = overtaken
    assert set(commit(ManifestLog(faulty), "mine").claims) == {"rival", "mine"}


@pytest.mark.parametrize("fault", [Fault.REQUEST_LOST, Fault.ANSWER_LOST])
def test_store_that_never_answers_leaves_the_outcome_unknown(store, fault):
    faulty = FaultyStore(store)
    faulty.faults = lambda operation, key: fault if operation == "put_if_absent" else None
    if fault is Fault.ANSWER_LOST:
        lost = times(1, fault, "put_if_absent", "manifest/")
        faulty.faults = lambda operation, key: (
            Fault.REQUEST_LOST
            if operation == "get" and key.endswith("1.json") and store.head(key)
            else lost(operation, key)
        )
    with pytest.raises(CommitOutcomeUnknown):
        commit(ManifestLog(faulty))


def test_refusal_after_a_lost_answer_is_no_answer(store: ObjectStore) -> None:
    faulty = FaultyStore(store)
    answers = iter([Fault.ANSWER_LOST, *[Fault.REFUSED] * 10])
    faulty.faults = lambda operation, key: next(answers) if operation == "put_if_absent" else None
    with pytest.raises(CommitOutcomeUnknown):
        commit(ManifestLog(faulty))
    assert ManifestLog(store).read().seq == 1


def test_refused_put_raises_its_own_error(store: ObjectStore) -> None:
    faulty = FaultyStore(store)
    faulty.faults = times(1, Fault.REFUSED, "put_if_absent", "manifest/")
    with pytest.raises(FolderNotWritable):
        commit(ManifestLog(faulty))


def test_failing_hint_and_checkpoint_do_not_fail_the_commit(store: ObjectStore) -> None:
    faulty = FaultyStore(store)
    faulty.faults = lambda operation, key: Fault.REFUSED if operation == "put" else None
    log = ManifestLog(faulty)
    for _ in range(CHECKPOINT_EVERY + 1):
        commit(log)
    assert ManifestLog(store).read().seq == CHECKPOINT_EVERY + 1


@pytest.fixture
def long_log(store: ObjectStore) -> ManifestLog:
    log = ManifestLog(store)
    a_folder(store)
    for number in range(3 * CHECKPOINT_EVERY + 5):
        commit(log, f"scope {number % 7}")
    return log


class CountingStore(FaultyStore):
    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self.calls: list[tuple[str, str]] = []
        self.faults = lambda operation, key: self.calls.append((operation, key))  # type: ignore[func-returns-value]


def test_long_log_opens_without_reading_or_listing_it(store, long_log):
    counting = CountingStore(store)
    assert ManifestLog(counting).read() == long_log.read()
    assert len(counting.calls) <= CHECKPOINT_EVERY + 3
    assert ("list", layout.MANIFEST) not in counting.calls


def test_second_read_only_probes_the_next_number(store: ObjectStore, long_log: ManifestLog) -> None:
    counting = CountingStore(store)
    log = ManifestLog(counting)
    log.read()
    counting.calls.clear()
    log.read()
    assert counting.calls == [("get", layout.manifest_key(long_log.read().next_seq))]


def test_a_log_that_follows_another_reads_what_came_since(store, long_log):
    counting = CountingStore(store)
    log, seq = ManifestLog(counting), long_log.read().seq
    log.follow(long_log)
    commit(ManifestLog(store), "since")
    assert log.read() == ManifestLog(store).read()
    keys = [layout.manifest_key(number) for number in (seq, seq + 1, seq + 2)]
    assert counting.calls == [("get", key) for key in keys]


def test_a_log_of_a_folder_that_was_begun_anew_follows_nothing(store, long_log):
    store.delete([info.key for info in store.list("metadata/")])
    anew = ManifestLog(store)
    a_folder(store)
    for number in range(long_log.read().seq + 1):
        commit(anew, f"other {number}")
    log = ManifestLog(store)
    log.follow(long_log)
    assert log.read() == anew.read() == ManifestLog(store).read()
    assert set(log.read().claims) != set(long_log.read().claims)


@pytest.mark.parametrize("at", [1, 63, 64, 65, 130, 192, 198])
def test_state_from_a_checkpoint_equals_the_one_folded_from_the_start(store, long_log, at):
    with_checkpoints = ManifestLog(store).read(at=at)
    store.delete([info.key for info in store.list(layout.CHECKPOINTS)])
    store.delete([layout.LATEST])
    assert ManifestLog(store).read(at=at) == with_checkpoints
    assert with_checkpoints.seq == at


@pytest.fixture
def published_log(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> ManifestLog:
    """Ten snapshots and a checkpoint that has but two of their records."""
    monkeypatch.setattr(checkpoints, "RECORDS_KEPT", 2)
    monkeypatch.setattr(manifest, "CHECKPOINT_EVERY", 11)
    folder = a_folder(store)
    for number in range(10):
        published(folder, number, files=1)
    return folder.log


def test_only_records_that_are_looked_at_are_read(store, published_log):
    counting = CountingStore(store)
    state = ManifestLog(counting).read()
    assert state.seq == 11
    assert len(state.live) == 10
    counting.calls.clear()
    assert state.snapshots[-1] == published_log.read().snapshots[-1]
    assert counting.calls == []
    assert state.snapshots[:3] == published_log.read().snapshots[:3]
    assert counting.calls == [("get", layout.manifest_key(seq)) for seq in (2, 3, 4)]
    assert state.live_files == published_log.read().live_files


def test_record_whose_entry_is_gone_is_damage(store, published_log):
    state = ManifestLog(store).read()
    store.put(layout.manifest_key(3), store.get(layout.manifest_key(2)))
    store.delete([layout.manifest_key(2)])
    for number in (0, 1):
        with pytest.raises(ManifestCorrupt, match=f"{number + 2}.json is damaged"):
            state.live[day(number)]


def test_only_the_newest_checkpoints_are_kept(store: ObjectStore, long_log: ManifestLog) -> None:
    assert {info.key for info in store.list(layout.CHECKPOINTS)} == {
        layout.checkpoint_key(2 * CHECKPOINT_EVERY),
        layout.checkpoint_key(3 * CHECKPOINT_EVERY),
    }


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda d: b"", id="empty"),
        pytest.param(lambda d: d[: len(d) // 2], id="truncated"),
        pytest.param(lambda d: d.replace(b"scope 3", b"scope 4"), id="altered"),
        pytest.param(lambda d: d.replace(b'"format": 1', b'"format": 2'), id="newer"),
        pytest.param(lambda d: b"\xff\xfe\n{}", id="binary"),
        pytest.param(lambda d: b"[]\n[]\n", id="another document"),
    ],
)
def test_broken_checkpoint_is_ignored_with_a_warning(store, long_log, damage, caplog):
    key = layout.checkpoint_key(3 * CHECKPOINT_EVERY)
    store.put(key, damage(store.get(key)))  # type: ignore[operator]
    with caplog.at_level(logging.WARNING):
        assert ManifestLog(store).read() == long_log.read()
    assert "ignoring the checkpoint" in caplog.text


@pytest.mark.parametrize(
    "hint",
    [
        None, b"", b"nonsense", b"[]", b'{"seq": "x", "checkpoint": 1}',
        b'{"seq": 1, "checkpoint": 0}', b'{"seq": 1, "checkpoint": 77}', b"\xff",
    ],
)  # fmt: skip
def test_hint_that_is_wrong_or_stale_only_costs_time(store, long_log, hint):
    store.delete([layout.LATEST])
    if hint is not None:
        store.put(layout.LATEST, hint)
    assert ManifestLog(store).read() == long_log.read()


def test_lost_entry_is_noticed_and_its_number_not_used_again(store: ObjectStore) -> None:
    log = ManifestLog(store)
    for _ in range(5):
        commit(log)
    store.delete([layout.manifest_key(4)])
    with pytest.raises(ManifestCorrupt, match=r"0004\.json is damaged"):
        commit(ManifestLog(store))


@pytest.mark.parametrize(
    ("document", "error", "message"),
    [
        pytest.param(b"{", ManifestCorrupt, "not JSON", id="broken"),
        pytest.param(b"\xff", ManifestCorrupt, "not JSON", id="binary"),
        pytest.param(b"", ManifestCorrupt, "not JSON", id="empty"),
        pytest.param(b"[1]", ManifestCorrupt, "no format version", id="list"),
        pytest.param(b'{"format": true}', ManifestCorrupt, "no format version", id="boolean"),
        pytest.param(b'{"format": 1}', ManifestCorrupt, "action", id="no action"),
        pytest.param(b'{"format": 1, "action": "burn"}', ManifestCorrupt, "burn", id="unknown"),
        pytest.param(b'{"format": 3, "action": "x"}', FormatTooNew, "Upgrade", id="newer"),
    ],
)
def test_damaged_entry_is_named(store, document, error, message):
    commit(ManifestLog(store))
    store.put(layout.manifest_key(2), document)
    with pytest.raises(error, match=r"00002\.json") as caught:
        ManifestLog(store).read()
    assert message in str(caught.value)


def test_entry_under_another_number_is_damage(store: ObjectStore) -> None:
    commit(ManifestLog(store))
    store.put(layout.manifest_key(2), store.get(layout.manifest_key(1)))
    with pytest.raises(ManifestCorrupt, match=r"0002\.json"):
        ManifestLog(store).read()


def test_unknown_key_in_an_entry_is_damage(store: ObjectStore) -> None:
    commit(ManifestLog(store))
    entry = json.loads(store.get(layout.manifest_key(1)))
    store.put(layout.manifest_key(1), json.dumps({**entry, "extra": 1}).encode())
    with pytest.raises(ManifestCorrupt) as caught:
        ManifestLog(store).read()
    assert "extra" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "is_of_table"),
    [
        ("s3://lake/wide/data/_delta_log/00000000000000000003.json", True),
        ("iceberg/metadata/v3.metadata.json", True),
        ("file:///lake/wide/commits/ab.json", True),
        ("file:///iceberg/commits/wide/metadata/schema/ab.json", False),
        ("file:///lake/iceberg/metadata/manifest/00000000000000000003.json", False),
    ],
)
def test_only_damage_of_a_document_of_a_table_ends_its_folder(name, is_of_table):
    assert ("publish to a new folder" in str(corrupt(name, "no JSON").hint)) is is_of_table
