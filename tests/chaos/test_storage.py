"""Storage that fails under a run: nothing is published half, and the next run publishes it once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.chaosroom import PLACE, Room
from support.clusterkubectl import KubectlFailed
from support.disks import small_disk
from support.lossyproxy import Loss, lossy
from support.s3servers import BUCKET, S3Server, running_versitygw
from support.shop import FIRST_DAY, SECOND_DAY
from support.wholebucket import in_bucket, secret_of, upload

pytestmark = [pytest.mark.node, pytest.mark.slow, pytest.mark.timeout(1200)]

OTHER = "outputdataset/other"
ENTRY = "/metadata/manifest/"
"""In the path of what commits a snapshot."""


def fill(disk: Path) -> Path:
    """A file that takes all that is left of a disk."""
    ballast = disk / "ballast"
    room = os.statvfs(disk)
    ballast.write_bytes(bytes(room.f_bavail * room.f_frsize))
    return ballast


def declare_in_bucket(room: Room, server: S3Server) -> None:
    add_day_to_bucket(room, server, FIRST_DAY)
    room.apply(*in_bucket([*room.sources(), room.output()], server, str(PLACE), "shop"))


def add_day_to_bucket(room: Room, server: S3Server, day: str) -> None:
    room.add_day(day)
    files = room.folder.glob(f"*/{day}.parquet")
    upload(server, {f"shop/{path.relative_to(room.folder)}": path for path in files})


def refusing(is_revoked: Callable[[], bool]) -> Loss:
    """Refuses to write what commits snapshots, as long as the keys are revoked."""

    def loss(method: str, path: str) -> str | None:
        return "403" if method == "PUT" and ENTRY in path and is_revoked() else None

    return loss


def test_full_volume_is_reported_and_its_run_retried_when_there_is_room(room: Room) -> None:
    with small_disk(room.folder, "1m"):
        room.add_day(FIRST_DAY)
        ballast = fill(room.folder)
        room.declare()
        room.until_said("No space left on device")
        ballast.unlink()
        room.until_published(FIRST_DAY)
        room.kubectl("delete", "pods", "--all")


def test_two_outputs_never_share_a_folder(room: Room) -> None:
    room.declare()
    room.until_published(FIRST_DAY)
    other = room.output() | {"metadata": {"name": "other"}}
    with pytest.raises(KubectlFailed, match="OutputDataset/wide publishes to the same folder"):
        room.apply(other)
    with without_webhook(room):
        room.apply(other)
    room.until_said("OutputDataset/wide publishes to the same folder", resource=OTHER)
    room.check_rows(room.folder / "wide", [f"{FIRST_DAY}T00:00:00Z"])
    folder = other["spec"]["outputFolder"] | {"folderUri": f"file://{PLACE}/other/"}
    room.apply(other | {"spec": other["spec"] | {"outputFolder": folder}})
    room.until("the other output", lambda: room.condition(resource=OTHER).get("status") == "True")
    room.check_rows(room.folder / "other", [f"{FIRST_DAY}T00:00:00Z"])
    assert room.condition()["reason"] == "Published"


@contextmanager
def without_webhook(room: Room) -> Iterator[None]:
    """Nobody is asked before objects are stored, as where the webhook is off."""
    kind = "validatingwebhookconfigurations"
    (webhook,) = room.cluster_wide.list(kind)
    del webhook["metadata"]["resourceVersion"], webhook["metadata"]["uid"]
    webhook["metadata"].pop("managedFields", None)
    room.cluster_wide("delete", kind, webhook["metadata"]["name"])
    try:
        yield
    finally:
        room.cluster_wide("create", "--filename", "-", stdin=json.dumps(webhook))


def test_keys_revoked_in_the_middle_of_a_commit_publish_nothing(room: Room, tmp_path: Path) -> None:
    revoked = [False]
    address = room.own.whole.host
    published = tmp_path / "buckets" / BUCKET / "shop" / "wide"
    with (
        running_versitygw(tmp_path, address) as real,
        lossy(real, refusing(lambda: revoked[0]), address) as server,
    ):
        declare_in_bucket(room, server)
        room.until("the first snapshot", lambda: room.status().get("snapshotCount") == 1)
        revoked[0] = True
        add_day_to_bucket(room, server, SECOND_DAY)
        room.ask_for_run()
        room.until_said("may not be written with these credentials")
        room.check_rows(published, [f"{FIRST_DAY}T00:00:00Z"])
        revoked[0] = False
        room.until("the second snapshot", lambda: room.status().get("snapshotCount") == 2)
        room.check_rows(published, [f"{day}T00:00:00Z" for day in (FIRST_DAY, SECOND_DAY)])


def test_rotated_secret_is_reported_and_the_new_one_works(room: Room, tmp_path: Path) -> None:
    address = room.own.whole.host
    with running_versitygw(tmp_path, address) as server:
        declare_in_bucket(room, server)
        room.until("the first snapshot", lambda: room.status().get("snapshotCount") == 1)
    port = int(server.endpoint.rpartition(":")[2])
    with running_versitygw(tmp_path, address, port, secret="rotated-and-logged-nowhere") as rotated:
        add_day_to_bucket(room, rotated, SECOND_DAY)
        room.ask_for_run()
        room.until("a failure", lambda: bool(room.events("RunFailed")))
        room.messages += room.events("RunFailed")
        room.apply(secret_of(rotated))
        room.until("the second snapshot", lambda: room.status().get("snapshotCount") == 2)
    assert rotated.secret not in room.kubectl("get", "snaploom,events", "--output", "yaml")
    days = [f"{day}T00:00:00Z" for day in (FIRST_DAY, SECOND_DAY)]
    room.check_rows(tmp_path / "buckets" / BUCKET / "shop" / "wide", days)
