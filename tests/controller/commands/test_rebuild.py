"""`snaploom status --rebuild`: the manifest on storage is enough to restore a status."""

from pathlib import Path
from typing import Any

import pytest
from support.declared.declarations import model, output
from support.declared.shop import snaploom
from support.operator.operatorharness import condition, is_ready, started
from support.storage.folders import a_folder, published

from snaploom.files.local import LocalObjectStore
from snaploom.models.outputdataset import OutputDataset
from snaploom_operator.cluster.port import OURS
from snaploom_operator.commands.status import rebuild_status

WIDE = "OutputDataset/wide"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An output folder with three snapshots."""
    path = tmp_path / "out"
    opened = a_folder(LocalObjectStore(path, create=True))
    for number in range(3):
        published(opened, number)
    return path


def over(folder: Path, **changes: Any) -> dict[str, Any]:
    return output(**{"outputFolder.folderUri": f"file://{folder}/", **changes})


async def test_a_lost_status_is_rebuilt_and_kept(folder: Path) -> None:
    harness = await started()
    *others, _ = model()
    await harness.apply(*others, over(folder))
    await harness.wait_for(WIDE, is_ready)
    await harness.apply(over(folder, **{"run.suspend": True}))
    lost = dict.fromkeys(("latestSnapshot", "snapshots", "snapshotCount", "manifest"))
    await harness.cluster.patch(
        OURS["OutputDataset"], harness.namespace, "wide", {"status": lost}, subresource="status"
    )
    await harness.settle()
    forgotten = await harness.get(WIDE)
    assert condition(forgotten, "SnapshotFresh")["reason"] == "NeverPublished"
    await rebuild_status(OutputDataset.parse(forgotten), harness.cluster)
    await harness.settle()
    found = await harness.get(WIDE)
    status = found["status"]
    assert (status["snapshotCount"], status["manifest"]["sequence"]) == (3, 4)
    assert [each["time"][:10] for each in status["snapshots"]] == [
        "2020-01-03", "2020-01-02", "2020-01-01",
    ]  # fmt: skip
    assert (status["latestSnapshot"]["rows"], status["latestSnapshot"]["files"]) == (20, 2)
    assert status["lastRun"] == forgotten["status"]["lastRun"]
    assert condition(found, "SnapshotFresh")["reason"] != "NeverPublished"


def test_a_status_that_was_never_written_is_rebuilt(folder, control_plane, namespace, kubectl):
    kubectl.apply(over(folder), namespace=namespace)
    place = ("--kubeconfig", control_plane.kubeconfig, "-n", namespace)
    result = snaploom("status", "ods/wide", "--rebuild", *place)
    assert (result.code, result.err) == (0, "")
    stored = kubectl.get("outputdataset", "wide", namespace)
    assert stored["status"]["snapshotCount"] == 3
    version = stored["metadata"]["resourceVersion"]
    snaploom("status", "ods/wide", "--rebuild", *place)
    again = kubectl.get("outputdataset", "wide", namespace)
    assert again["metadata"]["resourceVersion"] == version


def test_a_folder_without_a_manifest_is_an_error(tmp_path, control_plane, namespace, kubectl):
    kubectl.apply(over(tmp_path / "nothing"), namespace=namespace)
    place = ("--kubeconfig", control_plane.kubeconfig, "-n", namespace)
    result = snaploom("status", "ods/wide", "--rebuild", *place)
    assert result.code == 1
    assert "is not an output folder" in result.err
    assert "status" not in kubectl.get("outputdataset", "wide", namespace)


@pytest.mark.parametrize("name", [(), ("datasource/customer",)])
def test_only_one_output_can_be_rebuilt(name: tuple[str, ...]) -> None:
    result = snaploom("status", *name, "--rebuild", "--kubeconfig", "/nowhere")
    assert result.code == 2
    assert "expected: OutputDataset/NAME" in " ".join(result.err.split())
