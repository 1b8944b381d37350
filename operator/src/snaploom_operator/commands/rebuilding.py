"""`snaploom status --rebuild`: what is published, from the manifest on storage into the status.

The manifest is authoritative, and a report only tells of it. Where the report of a run was lost, or
a status, the operator would learn the rest from the next run; this asks for none. Conditions are
the operator's: it draws them anew from what it then finds in the status.
"""

from __future__ import annotations

from snaploom.models.codes import make_finding
from snaploom.models.finding import InvalidDeclarations
from snaploom.models.outputdataset import OutputDataset, OutputDatasetStatus
from snaploom.storage.folder import open_folder
from snaploom.storage.published import manifest_pointer, newest_snapshot, published_snapshots
from snaploom.storage.stores import open_store
from snaploom_operator.acting.statuswriting import write_status
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.commands.naming import Named


def output_named(named: Named | None) -> Named:
    """The output whose status is to be rebuilt.

    Raises:
        InvalidDeclarations: none is named, or what is named publishes nothing.
    """
    if named is not None and named.kind.name == OutputDataset.__name__:
        return named
    finding = make_finding(
        "SL191",
        "only what an OutputDataset has published can be read back",
        path="--rebuild",
        found="no name" if named is None else str(named),
        expected="OutputDataset/NAME",
        hint="name one output; `snaploom status` lists them",
    )
    raise InvalidDeclarations([finding])


def rebuilt_status(output: OutputDataset) -> OutputDatasetStatus:
    """The status of an output with what its folder says; what only runs know stays as it was.

    Raises:
        StorageError: the folder cannot be read, or nothing was ever published there.
    """
    uri = output.spec.output_folder.folder_uri
    state = open_folder(open_store(uri, create=False)).log.read()
    before = output.status or OutputDatasetStatus()
    return before.model_copy(
        update={
            "latest_snapshot": newest_snapshot(state),
            "snapshots": published_snapshots(state),
            "snapshot_count": len(state.live),
            "manifest": manifest_pointer(uri, state),
        }
    )


async def rebuild_status(output: OutputDataset, cluster: Cluster) -> None:
    """Write it.

    Raises:
        StorageError: see `rebuilt_status`.
        ClusterError: it may not be written, or the output was changed meanwhile.
    """
    await write_status(output, rebuilt_status(output), cluster)
