"""What the manifest of an output shows in a status."""

from __future__ import annotations

import pytest
from support.storage.folders import IDENTITY, SETTINGS, a_folder, a_run, day, now, published

from snaploom.files.stores import open_store
from snaploom.models.common import TimeOffset
from snaploom.output.entries import Revoke, Tombstone
from snaploom.output.folder import Folder, prepare_folder
from snaploom.output.history import manifest_pointer
from snaploom.output.leaseholder import ClaimLease
from snaploom.output.leases import Swap
from snaploom.output.state import FolderState, tombstone_of


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
