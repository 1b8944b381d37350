"""The fold over entries: what it refuses, and that it is a fold."""

import datetime as dt
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.storage.folders import DAY as FOLDER_DAY
from support.storage.folders import (
    IDENTITY,
    MODEL,
    SETTINGS,
    START,
    a_folder,
    a_run,
    day,
    now,
    published,
)

from snaploom.errors import ArgumentInvalid, ManifestCorrupt, SnaploomError
from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos, TimeOffset, format_instant, parse_instant
from snaploom.models.report import Exclusion, ExclusionReason, JoinMeasure, SourceSnapshot
from snaploom.output.checkpoints import format_checkpoint, parse_checkpoint
from snaploom.output.entries import (
    Claim,
    Configure,
    Entry,
    FileRecord,
    Publish,
    Replace,
    Revoke,
    SnapshotRecord,
    Tombstone,
    format_entry,
    parse_entry,
)
from snaploom.output.folder import Folder, prepare_folder
from snaploom.output.history import NothingPublished, manifest_pointer
from snaploom.output.layout import content_hash
from snaploom.output.leaseholder import ClaimLease
from snaploom.output.leases import Swap
from snaploom.output.state import EMPTY, FolderState, Records, apply, fold, tombstone_of
from snaploom.output.versions import (
    ReadChoice,
    VersionChoice,
    instant_of,
    known_state,
    refuse_number,
)

RUN = a_run().run_id
RUNS = tuple(a_run().run_id for _ in range(5))
SCHEMAS = tuple(content_hash(b"schema %d" % number) for number in range(2))


def header(seq: int, run_id: str = RUN) -> dict[str, object]:
    return {"seq": seq, "run_id": run_id, "written_at": START, "tool_version": "0.0.0"}


def a_record(seq: int, number: int, run_id: str = RUN) -> SnapshotRecord:
    return SnapshotRecord(
        time=day(number),
        partition=f"day={number}",
        seq=seq,
        run_id=run_id,
        created_at=EpochNanos(START + 123_456_789),
        plan_hash="p",
        schema_hash=SCHEMAS[number % 2],
        model_hash=content_hash(b"model"),
        rows=3,
        sources=(SourceSnapshot(field_name="", source="customer", time="2020-01-01T00:00:00Z"),),
        excluded=(Exclusion(field_name="loyalty", reason=ExclusionReason.SNAPSHOT_MISSING),),
        joins=(JoinMeasure(child="address", in_=3, out=3, matched=2, null_keys=0),),
        files=(
            FileRecord(path=f"data/day={number}/{run_id}-{seq:08x}-00000.parquet", bytes=9, rows=3),
        ),
        tool_version="0.0.0",
    )


def configure(seq: int) -> Configure:
    return Configure(**header(seq), settings=SETTINGS, identity=IDENTITY)  # type: ignore[arg-type]


def publish(seq: int, number: int, run_id: str = RUN) -> Publish:
    record = a_record(seq, number, run_id)
    return Publish(**header(seq, run_id), snapshot=record, model=MODEL)  # type: ignore[arg-type]


def bury(state: FolderState, number: int) -> Tombstone:
    seq = state.next_seq
    ended = tombstone_of(state.live[day(number)], seq=seq, rule="maxOld", deleted_at=START)
    return Tombstone(**header(seq), snapshots=(ended,))  # type: ignore[arg-type]


def restate(state: FolderState, number: int) -> Replace:
    seq = state.next_seq
    ended = tombstone_of(state.live[day(number)], seq=seq, rule="REPLACED", deleted_at=START)
    return Replace(
        **header(seq),  # type: ignore[arg-type]
        snapshot=a_record(seq, number),
        replaced=ended,
        model=MODEL,
        message="corrected",
    )


def revoke(seq: int, *run_ids: str) -> Revoke:
    return Revoke(**header(seq), run_ids=run_ids)  # type: ignore[arg-type]


def claim(seq: int, scope: str) -> Claim:
    return Claim(**header(seq), scope=scope, seconds=60)  # type: ignore[arg-type]


@pytest.fixture
def state() -> FolderState:
    return fold(EMPTY, [configure(1), publish(2, 0)])


def test_replacement_ends_the_old_version_and_starts_the_new_at_once(state: FolderState) -> None:
    after = apply(state, restate(state, 0))
    assert [record.seq for record in after.snapshots] == [3]
    assert [ended.published_seq for ended in after.tombstones] == [2]
    assert after.tombstoned_times == frozenset()
    assert not after.live_files & set(after.tombstoned_files)


def test_tombstone_keeps_the_time_known(state: FolderState) -> None:
    after = apply(state, bury(state, 0))
    assert after.live == {}
    assert after.tombstoned_times == {day(0)}
    assert set(after.tombstoned_files) == state.live_files
    assert after.models == state.models


def test_applying_leaves_the_state_before_untouched(state: FolderState) -> None:
    copy = fold(EMPTY, [configure(1), publish(2, 0)])
    apply(state, bury(state, 0))
    apply(state, revoke(3, RUNS[0]))
    assert state == copy


def test_newest_claim_on_a_scope_counts(state: FolderState) -> None:
    after = fold(state, [claim(3, "a"), claim(4, "b"), claim(5, "a")])
    assert {scope: one.seq for scope, one in after.claims.items()} == {"a": 5, "b": 4}


def test_schemas_are_ordered_by_snapshot_time_not_by_commit(state: FolderState) -> None:
    after = fold(state, [publish(3, 5), publish(4, 3)])
    history = [(at.time, at.schema_hash) for at in after.timeline]
    assert history == [(day(0), SCHEMAS[0]), (day(3), SCHEMAS[1]), (day(5), SCHEMAS[1])]


def contradictions(state: FolderState) -> dict[str, Entry]:
    buried = apply(state, bury(state, 0))
    other = SETTINGS.model_copy(update={"data_format": "AVRO"})
    stolen = publish(3, 1).model_copy(update={"run_id": "another"})
    return {
        "gap": publish(4, 1),
        "number used again": publish(2, 1),
        "second live version": publish(3, 0),
        "snapshot of another run": stolen,
        "snapshot of another entry": publish(3, 1).model_copy(update={"snapshot": a_record(9, 1)}),
        "end of what is not live": bury(state, 0).model_copy(
            update={"snapshots": (buried.tombstones[0].model_copy(update={"time": day(7)}),)}
        ),
        "end with other files": bury(state, 0).model_copy(
            update={"snapshots": (buried.tombstones[0].model_copy(update={"files": ()}),)}
        ),
        "end by another entry": bury(state, 0).model_copy(
            update={"snapshots": (buried.tombstones[0].model_copy(update={"seq": 8}),)}
        ),
        "other settings": configure(3).model_copy(update={"settings": other}),
        "replacement of another time": restate(state, 0).model_copy(
            update={"snapshot": a_record(3, 1)}
        ),
    }


NAMES = list(contradictions(fold(EMPTY, [configure(1), publish(2, 0)])))


@pytest.mark.parametrize("name", NAMES)
def test_contradicting_entry_is_refused(state: FolderState, name: str) -> None:
    with pytest.raises(ManifestCorrupt, match="damaged"):
        apply(state, contradictions(state)[name])


def test_revoked_run_cannot_publish(state: FolderState) -> None:
    after = apply(state, revoke(3, RUN))
    with pytest.raises(ManifestCorrupt) as caught:
        apply(after, publish(4, 1))
    assert "revoked" in str(caught.value.found)
    assert day(1) in apply(after, publish(4, 1, RUNS[0])).live


def test_nothing_is_published_before_the_folder_is_configured() -> None:
    with pytest.raises(ManifestCorrupt):
        apply(EMPTY, publish(1, 0))


@st.composite
def histories(draw: st.DrawFn) -> list[Entry]:
    """Any legal history."""
    entries: list[Entry] = [configure(1)]
    state = apply(EMPTY, entries[0])
    for number in draw(st.lists(st.integers(0, 4), max_size=25)):
        kind = draw(st.sampled_from(["publish", "bury", "restate", "revoke", "claim"]))
        seq, is_live = state.next_seq, day(number) in state.live
        entry: Entry
        if kind == "publish" and not is_live:
            entry = publish(seq, number)
        elif kind == "bury" and is_live:
            entry = bury(state, number)
        elif kind == "restate" and is_live:
            entry = restate(state, number)
        elif kind == "revoke":
            entry = revoke(seq, RUNS[number])
        else:
            entry = claim(seq, f"scope {number}")
        entries.append(entry)
        state = apply(state, entry)
    return entries


@given(histories(), st.data())
def test_folding_in_two_parts_is_folding_at_once(entries: list[Entry], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(entries)))
    assert fold(fold(EMPTY, entries[:cut]), entries[cut:]) == fold(EMPTY, entries)


@given(histories())
def test_state_survives_its_checkpoint(entries: list[Entry]) -> None:
    state = fold(EMPTY, entries)
    read = parse_checkpoint(format_checkpoint(state), state.seq, Records())
    assert read == state
    assert dict(read.live) == dict(state.live)
    assert list(read.tombstones) == list(state.tombstones)


@given(histories())
def test_entries_survive_their_documents(entries: list[Entry]) -> None:
    for entry in entries:
        document = format_entry(entry)
        assert parse_entry(document, "x") == entry
        assert format_entry(parse_entry(document, "x")) == document


@given(histories())
def test_every_file_is_live_or_dead_and_never_both(entries: list[Entry]) -> None:
    state = fold(EMPTY, entries)
    published = {
        file.path
        for entry in entries
        if isinstance(entry, Publish | Replace)
        for file in entry.snapshot.files
    }
    assert state.live_files | set(state.tombstoned_files) == published
    assert not state.live_files & set(state.tombstoned_files)


# What was known at a moment, whatever was published, replaced or deleted since.

Moves = list[tuple[str, int, int]]
"""What happens, to which day, and how many nanoseconds after what happened before."""
MOVES = st.lists(
    st.tuples(st.sampled_from(["publish", "bury", "restate"]), st.integers(0, 3), st.integers(0, 2))
)


def played(moves: Moves) -> tuple[FolderState, list[tuple[int, dict[int, int]]]]:
    """The state after moves; and what was live by day after each, by when and with which entry."""
    state, clock, live = apply(EMPTY, configure(1)), int(START), dict[int, int]()
    lived = [(clock - 1, dict(live))]
    for kind, number, gap in moves:
        if (kind == "publish") == (number in live):
            continue
        clock += gap
        entry: Entry = publish(state.next_seq, number)
        if kind != "publish":
            entry = bury(state, number) if kind == "bury" else restate(state, number)
        if isinstance(entry, Publish | Replace):
            dated = entry.snapshot.model_copy(update={"created_at": EpochNanos(clock)})
            entry = entry.model_copy(update={"snapshot": dated})
        state = apply(state, ended_at(entry, clock))
        live.pop(number, None)
        live |= {} if kind == "bury" else {number: entry.seq}
        lived.append((clock, dict(live)))
    return state, lived


def ended_at(entry: Entry, clock: int) -> Entry:
    when = {"deleted_at": EpochNanos(clock)}
    if isinstance(entry, Tombstone):
        ended = tuple(one.model_copy(update=when) for one in entry.snapshots)
        return entry.model_copy(update={"snapshots": ended})
    if isinstance(entry, Replace):
        return entry.model_copy(update={"replaced": entry.replaced.model_copy(update=when)})
    return entry


def known(state: FolderState, moment: int) -> dict[int, int]:
    """The entry of each day that was live at a moment."""
    try:
        found = known_state(state, EpochNanos(moment), "x:/")
    except NothingPublished:
        return {}
    assert {record.seq for record in found.snapshots} == {v.seq for v in found.versions.values()}
    return {(time - START) // FOLDER_DAY: each.seq for time, each in found.versions.items()}


@given(MOVES)
def test_what_was_known_is_what_was_live_after_the_last_entry_until_then(moves: Moves) -> None:
    state, lived = played(moves)
    for moment in range(START - 1, lived[-1][0] + 2):
        expected = [live for clock, live in lived if clock <= moment][-1]
        assert known(state, moment) == expected


@given(MOVES, MOVES)
def test_what_was_known_stays_known_whatever_is_published_later(first: Moves, later: Moves) -> None:
    state, lived = played(first)
    after, _ = played([*first, *((kind, number, gap + 1) for kind, number, gap in later)])
    for moment in range(START - 1, lived[-1][0] + 1):
        assert known(after, moment) == known(state, moment)


def test_version_is_not_known_before_the_one_that_it_replaced_ended_by_a_wrong_clock() -> None:
    state, _ = played([("publish", 0, 10), ("restate", 0, 10), ("restate", 0, -15), ("bury", 0, 9)])
    assert [known(state, START + after) for after in (5, 10, 19, 20)] == [{}, {0: 2}, {0: 2}, {}]


@pytest.mark.parametrize(
    ("after", "found"), [(-1, "the first was published at 2020-01-01T00:00:00Z"), (5, "deleted")]
)
def test_moment_without_a_snapshot_names_when_there_was_one(after: int, found: str) -> None:
    state, _ = played([("publish", 0, 0), ("bury", 0, 2), ("publish", 1, 9)])
    with pytest.raises(NothingPublished, match=found):
        known_state(state, EpochNanos(START + after), "x:/")


# What `at` and `between` of a read take, and how anything else is refused.


BERLIN = dt.datetime(2024, 1, 31, tzinfo=ZoneInfo("Europe/Berlin"))
WRONG = [
    ("01.02.2024", "'01.02.2024' (str)"),
    ("", "'' (str)"),
    (5, "5 (int)"),
    (True, "True (bool)"),
    (dt.time(1), "datetime.time(1, 0) (time)"),
    (dt.datetime.max.replace(tzinfo=dt.timezone(-dt.timedelta(hours=1))), "9999-12-31T23:59"),
]


@pytest.mark.parametrize(
    ("time", "instant"),
    [
        ("2024-01-31T12:00:00+01:00", "2024-01-31T11:00:00Z"),
        ("2024-01-31", "2024-01-31T00:00:00Z"),
        (dt.date(2024, 1, 31), "2024-01-31T00:00:00Z"),
        (BERLIN, "2024-01-30T23:00:00Z"),
    ],
)
def test_texts_dates_and_datetimes_are_times_at_every_place(time, instant) -> None:
    assert format_instant(ReadChoice.parse(time, None).at) == instant
    both = ReadChoice.parse(None, (time, time)).between
    assert {format_instant(end) for end in both} == {instant}
    assert format_instant(ReadChoice.parse(None, None, time).known_at) == instant


def test_number_and_time_of_the_past_are_not_asked_for_at_once() -> None:
    with pytest.raises(ArgumentInvalid, match=r"manifest=3 .* known_at=2020-01-01T00:00:00Z"):
        refuse_number(3, START)


@pytest.mark.parametrize(("wrong", "found"), WRONG)
def test_what_is_no_time_is_refused_with_what_was_found_and_the_forms_that_are_right(wrong, found):
    for argument, *choice in (
        ("at", wrong, None),
        ("between[1]", None, ("2024-01-01", wrong)),
        ("known_at", None, None, wrong),
    ):
        with pytest.raises(SnaploomError) as caught:
            ReadChoice.parse(*choice)
        assert caught.value.path == argument
        assert found in str(caught.value.found)
        assert "ISO 8601 with Z" in str(caught.value.expected)
        assert caught.value.hint


def test_time_without_a_zone_shows_the_form_that_is_right_for_utc() -> None:
    for time in ("2024-01-31T12:00:00", dt.datetime(2024, 1, 31, 12)):
        with pytest.raises(ArgumentInvalid, match="2024-01-31T12:00:00Z"):
            instant_of(time, "at")


@pytest.mark.parametrize("between", ["2024-01-01", 5, ("2024-01-01",), ("a", "b", "c")])
def test_range_that_is_no_pair_shows_a_pair(between) -> None:
    with pytest.raises(ArgumentInvalid, match="two times, the first and the last"):
        ReadChoice.parse(None, between)


def test_reversed_range_is_refused_with_both_ends() -> None:
    with pytest.raises(ArgumentInvalid, match="from 2024-02-01T00:00:00Z to 2024-01-01T00:00:00Z"):
        ReadChoice.parse(None, ("2024-02-01", dt.date(2024, 1, 1)))


DAY = parse_instant("2024-05-01T00:00:00Z")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-05-01", VersionChoice(DAY)),
        (dt.date(2024, 5, 1), VersionChoice(DAY)),
        ("2024-05-01@7", VersionChoice(DAY, 7)),
        ("2024-05-01T02:00:00+02:00@dry-run", VersionChoice(DAY, is_dry_run=True)),
    ],
)
def test_times_numbers_and_dry_runs_are_versions(text, expected) -> None:
    assert VersionChoice.parse(text, "data") == expected


@pytest.mark.parametrize(
    "text", ["2024-05-01@", "2024-05-01@-1", "2024-05-01@dry", "2024-05-01@٣", "@dry-run", "@", 5]
)
def test_anything_else_is_one_error_that_shows_what_is_right(text) -> None:
    with pytest.raises(ArgumentInvalid) as caught:
        VersionChoice.parse(text, "data[1]")
    assert caught.value.path == "data[1]"
    assert caught.value.expected
    assert caught.value.hint


@pytest.fixture
def folder() -> Folder:
    return a_folder(open_store("memory:", create=True))


def sequence(folder: Folder) -> int:
    return manifest_pointer("/out/", folder.log.read()).sequence


def revocation(state: FolderState) -> Revoke:
    return Revoke(
        seq=state.next_seq, run_id=a_run().run_id, written_at=now(), tool_version="0",
        run_ids=(a_run().run_id,),
    )  # fmt: skip


def deletion(state: FolderState) -> Tombstone:
    ended = tombstone_of(state.live[day(0)], seq=state.next_seq, rule="X", deleted_at=now())
    return Tombstone(
        seq=state.next_seq, run_id=a_run().run_id, written_at=now(), tool_version="0",
        snapshots=(ended,),
    )  # fmt: skip


def test_pointer_moves_with_what_readers_see(folder: Folder) -> None:
    assert sequence(folder) == 0
    published(folder)
    assert sequence(folder) == 2
    folder.log.commit(deletion)
    assert sequence(folder) == 3


def test_pointer_stays_where_readers_see_the_same(folder: Folder) -> None:
    """Outputs that read this one follow the pointer: it must make none of them run for nothing."""
    published(folder)
    before = sequence(folder)
    lease = ClaimLease(folder, a_run())
    assert lease.swap(Swap(lease.read(), a_run().run_id, 30)) is not None
    folder.log.commit(revocation)
    prepare_folder(folder.store, SETTINGS, IDENTITY, a_run(), reader_grace=TimeOffset(day=1))
    assert folder.log.read().seq == before + 3
    assert sequence(folder) == before
