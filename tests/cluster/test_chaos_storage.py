"""Storage that fails under a run: nothing is published half, and the next run publishes it once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.cluster.chaosnamespace import PLACE, ChaosNamespace
from support.cluster.clusterkubectl import KubectlFailed
from support.cluster.wholeflights import in_bucket, secret_of, upload
from support.declared.shop import FIRST_DAY, SECOND_DAY
from support.servers.lossyproxy import Loss, lossy
from support.servers.s3servers import BUCKET, S3Server, running_versitygw
from support.storage.disks import small_disk

pytestmark = [pytest.mark.chaos, pytest.mark.node, pytest.mark.slow, pytest.mark.timeout(1200)]

OTHER = "outputdataset/other"
ENTRY = "/metadata/manifest/"
"""In the path of what commits a snapshot."""


def fill(disk: Path) -> Path:
    """A file that takes all that is left of a disk."""
    ballast = disk / "ballast"
    chaos = os.statvfs(disk)
    ballast.write_bytes(bytes(chaos.f_bavail * chaos.f_frsize))
    return ballast


def declare_in_bucket(chaos: ChaosNamespace, server: S3Server) -> None:
    add_day_to_bucket(chaos, server, FIRST_DAY)
    chaos.apply(*in_bucket([*chaos.sources(), chaos.output()], server, str(PLACE), "shop"))


def add_day_to_bucket(chaos: ChaosNamespace, server: S3Server, day: str) -> None:
    chaos.add_day(day)
    files = chaos.folder.glob(f"*/{day}.parquet")
    upload(server, {f"shop/{path.relative_to(chaos.folder)}": path for path in files})


def refusing(is_revoked: Callable[[], bool]) -> Loss:
    """Refuses to write what commits snapshots, as long as the keys are revoked."""

    def loss(method: str, path: str) -> str | None:
        return "403" if method == "PUT" and ENTRY in path and is_revoked() else None

    return loss


def test_full_volume_is_reported_and_its_run_retried_when_there_is_room(
    chaos: ChaosNamespace,
) -> None:
    with small_disk(chaos.folder, "1m"):
        chaos.add_day(FIRST_DAY)
        ballast = fill(chaos.folder)
        chaos.declare()
        chaos.until_message("No space left on device")
        ballast.unlink()
        chaos.until_published(FIRST_DAY)
        chaos.kubectl("delete", "pods", "--all")


def test_two_outputs_never_share_a_folder(chaos: ChaosNamespace) -> None:
    chaos.declare()
    chaos.until_published(FIRST_DAY)
    other = chaos.output() | {"metadata": {"name": "other"}}
    with pytest.raises(KubectlFailed, match="OutputDataset/wide publishes to the same folder"):
        chaos.apply(other)
    with without_webhook(chaos):
        chaos.apply(other)
    chaos.until_message("OutputDataset/wide publishes to the same folder", resource=OTHER)
    chaos.check_rows(chaos.folder / "wide", [f"{FIRST_DAY}T00:00:00Z"])
    folder = other["spec"]["outputFolder"] | {"folderUri": f"file://{PLACE}/other/"}
    chaos.apply(other | {"spec": other["spec"] | {"outputFolder": folder}})
    chaos.until("the other output", lambda: chaos.condition(resource=OTHER).get("status") == "True")
    chaos.check_rows(chaos.folder / "other", [f"{FIRST_DAY}T00:00:00Z"])
    assert chaos.condition()["reason"] == "Published"


@contextmanager
def without_webhook(chaos: ChaosNamespace) -> Iterator[None]:
    """Store objects without a review, as where the webhook is off."""
    kind = "validatingwebhookconfigurations"
    (webhook,) = chaos.cluster_wide.list(kind)
    del webhook["metadata"]["resourceVersion"], webhook["metadata"]["uid"]
    webhook["metadata"].pop("managedFields", None)
    chaos.cluster_wide("delete", kind, webhook["metadata"]["name"])
    try:
        yield
    finally:
        chaos.cluster_wide("create", "--filename", "-", stdin=json.dumps(webhook))


def test_keys_revoked_in_the_middle_of_a_commit_publish_nothing(
    chaos: ChaosNamespace, tmp_path: Path
) -> None:
    revoked = [False]
    address = chaos.own.whole.host
    published = tmp_path / "buckets" / BUCKET / "shop" / "wide"
    with (
        running_versitygw(tmp_path, address) as real,
        lossy(real, refusing(lambda: revoked[0]), address) as server,
    ):
        declare_in_bucket(chaos, server)
        chaos.until("the first snapshot", lambda: chaos.status().get("snapshotCount") == 1)
        revoked[0] = True
        add_day_to_bucket(chaos, server, SECOND_DAY)
        chaos.ask_for_run()
        chaos.until_message("may not be written with these credentials")
        chaos.check_rows(published, [f"{FIRST_DAY}T00:00:00Z"])
        revoked[0] = False
        chaos.until("the second snapshot", lambda: chaos.status().get("snapshotCount") == 2)
        chaos.check_rows(published, [f"{day}T00:00:00Z" for day in (FIRST_DAY, SECOND_DAY)])


def test_rotated_secret_is_reported_and_the_new_one_works(
    chaos: ChaosNamespace, tmp_path: Path
) -> None:
    address = chaos.own.whole.host
    with running_versitygw(tmp_path, address) as server:
        declare_in_bucket(chaos, server)
        chaos.until("the first snapshot", lambda: chaos.status().get("snapshotCount") == 1)
    port = int(server.endpoint.rpartition(":")[2])
    with running_versitygw(tmp_path, address, port, secret="rotated-and-logged-nowhere") as rotated:
        add_day_to_bucket(chaos, rotated, SECOND_DAY)
        chaos.ask_for_run()
        chaos.until("a failure", lambda: bool(chaos.events("RunFailed")))
        chaos.messages += chaos.events("RunFailed")
        chaos.apply(secret_of(rotated))
        chaos.until("the second snapshot", lambda: chaos.status().get("snapshotCount") == 2)
    assert rotated.secret not in chaos.kubectl("get", "snaploom,events", "--output", "yaml")
    days = [f"{day}T00:00:00Z" for day in (FIRST_DAY, SECOND_DAY)]
    chaos.check_rows(tmp_path / "buckets" / BUCKET / "shop" / "wide", days)
