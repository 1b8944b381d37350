"""`snaploom status --rebuild`: restores the published snapshots of a status from the manifest.

The manifest is authoritative, and reports are derived from it. If a report or a status was lost,
the next run would restore it; this needs no run. Conditions are not written: the operator updates
them from the restored status.
"""

from __future__ import annotations

from snaploom.models.codes import make_finding
from snaploom.models.finding import InvalidDeclarations
from snaploom.models.outputdataset import OutputDataset, OutputDatasetStatus
from snaploom.storage.folder import open_folder
from snaploom.storage.statussummary import manifest_pointer, newest_snapshot, published_snapshots
from snaploom.storage.stores import open_store
from snaploom_operator.apply.statuswriter import write_status
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.commands.resourcenames import Named


def output_named(named: Named | None) -> Named:
    """Check that an OutputDataset is named.

    Raises:
        InvalidDeclarations: no resource is named, or one of another kind.
    """
    if named is not None and named.kind.name == OutputDataset.__name__:
        return named
    finding = make_finding(
        "SL191",
        "only the status of an OutputDataset can be rebuilt",
        path="--rebuild",
        found="no name" if named is None else str(named),
        expected="OutputDataset/NAME",
        hint="name one output; `snaploom status` lists them",
    )
    raise InvalidDeclarations([finding])


async def rebuild_status(output: OutputDataset, cluster: Cluster) -> None:
    """Write the status of an output with the snapshots of its folder; other fields are kept.

    Raises:
        StorageError: the folder cannot be read, or has no manifest.
        ClusterError: the write is not allowed, or the output was changed since it was read.
    """
    uri = output.spec.output_folder.folder_uri
    state = open_folder(open_store(uri, create=False)).log.read()
    before = output.status or OutputDatasetStatus()
    status = before.model_copy(
        update={
            "latest_snapshot": newest_snapshot(state),
            "snapshots": published_snapshots(state),
            "snapshot_count": len(state.live),
            "manifest": manifest_pointer(uri, state),
        }
    )
    await write_status(output, status, cluster)
