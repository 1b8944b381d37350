"""Deletion of what an output published (`deletionPolicy: Delete`).

Files are removed without Spark. The catalog table of an output with a `registerTable` needs a
session, and goes before the files: what is left after a failure can be tried again, and no engine
finds a table without its files meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable

from snaploom.jobs.session.spark import build_session
from snaploom.jobs.weaving.preparation import folder_store
from snaploom.jobs.weaving.registration import drop_registered
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.runfacts import Removed
from snaploom.models.times import EpochNanos
from snaploom.storage.layout import new_run_id
from snaploom.storage.ownership import FolderOwner
from snaploom.storage.removal import remove_folder
from snaploom.storage.writeridentity import Run
from snaploom.version import VERSION

NAMES_SHOWN = 20
"""Names of files that stay, in a Report."""


def remove_output(
    output: OutputDataset,
    clock: Callable[[], EpochNanos],
    check: Callable[[], None],
    allow: Allowances = NO_ALLOWANCES,
) -> Removed:
    """Remove the catalog table and the folder of an output, as far as they are Snaploom's.

    Args:
        output: the OutputDataset that is deleted.
        clock: the time.
        check: called between files; raises to stop, and running again goes on.
        allow: what its `run` may ask for beyond the built-in lists.

    Raises:
        PublicationError: the folder is another's, or refuses.
        SparkNotStarted: there is no Spark to ask the catalog with.
        StorageError: the store does not answer, or the manifest is damaged.
        Exception: whatever `check` raises.
    """
    run = Run(new_run_id(clock()), VERSION, clock, lambda _: check())
    metadata = output.metadata
    owner = FolderOwner(output.name, metadata.namespace or "", metadata.uid or "")
    store = folder_store(output, allow=allow)
    table = None
    if output.spec.output_folder.register_table is not None:
        spark = build_session("snaploom delete", output.spec.run, allow)
        table = drop_registered(spark, output, store.uri)
        check()
    removal = remove_folder(store, owner, run)
    return Removed(
        files=removal.files,
        bytes=removal.bytes,
        left=len(removal.left),
        left_names=tuple(name[:1024] for name in removal.left[:NAMES_SHOWN]),
        table=table,
    )
