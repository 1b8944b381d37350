"""What `at` and `between` of a read take, and how anything else is refused."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pytest
from support.storage.folders import IDENTITY, SETTINGS, a_folder, a_run, day, now, published

from snaploom.errors import ArgumentInvalid, SnaploomError
from snaploom.files.stores import open_store
from snaploom.models.common import TimeOffset, format_instant, parse_instant
from snaploom.output.entries import Revoke, Tombstone
from snaploom.output.folder import Folder, prepare_folder
from snaploom.output.history import manifest_pointer
from snaploom.output.leaseholder import ClaimLease
from snaploom.output.leases import Swap
from snaploom.output.state import FolderState, tombstone_of
from snaploom.output.versions import ReadChoice, VersionChoice, instant_of

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
    assert both is not None
    assert {format_instant(end) for end in both} == {instant}


@pytest.mark.parametrize(("wrong", "found"), WRONG)
def test_what_is_no_time_is_refused_with_what_was_found_and_the_forms_that_are_right(
    wrong, found
) -> None:
    for argument, at, between in (("at", wrong, None), ("between[1]", None, ("2024-01-01", wrong))):
        with pytest.raises(SnaploomError) as caught:
            ReadChoice.parse(at, between)
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
