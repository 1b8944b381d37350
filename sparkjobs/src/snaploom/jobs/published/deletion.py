"""Deletion of what an output published (`deletionPolicy: Delete`); needs no Spark."""

from __future__ import annotations

from collections.abc import Callable

import snaploom
from snaploom.jobs.weaving.preparation import folder_store
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.runfacts import Removed
from snaploom.models.times import EpochNanos
from snaploom.storage.layout import new_run_id
from snaploom.storage.ownership import FolderOwner
from snaploom.storage.removal import remove_folder
from snaploom.storage.run import Run

NAMES_TOLD = 20
"""Names of files that stay, in a Report."""


def remove_output(
    output: OutputDataset, clock: Callable[[], EpochNanos], check: Callable[[], None]
) -> Removed:
    """Remove the folder of an output, as far as it is Snaploom's.

    Args:
        output: the OutputDataset that is deleted.
        clock: the time.
        check: called between files; raises to stop, and running again goes on.

    Raises:
        PublicationError: the folder is another's, or refuses.
        StorageError: the store does not answer, or the manifest is damaged.
        Exception: whatever `check` raises.
    """
    run = Run(new_run_id(clock()), snaploom.__version__, clock, lambda _: check())
    metadata = output.metadata
    owner = FolderOwner(output.name, metadata.namespace or "", metadata.uid or "")
    removal = remove_folder(folder_store(output), owner, run)
    return Removed(
        files=removal.files,
        bytes=removal.bytes,
        left=len(removal.left),
        left_names=tuple(name[:1024] for name in removal.left[:NAMES_TOLD]),
    )
