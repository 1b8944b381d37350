"""Whether what a run will read is so little that Java need not be prepared for much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from snaploom.errors import SnaploomError
from snaploom.jobs.session.smallwork import SMALL_BYTES
from snaploom.listing.otherfiles import SparkNeeded
from snaploom.listing.snapshotbytes import snapshot_bytes
from snaploom.listing.sourcefiles import SourceFiles
from snaploom.planning.bundle import Bundle
from snaploom.planning.plan import PlannedSnapshot
from snaploom.planning.steps import ReadSource


def is_small(bundle: Bundle, due: Sequence[PlannedSnapshot], files: SourceFiles) -> bool:
    """Whether some snapshots of an output are woven from few bytes; false wherever it is unknown.

    Args:
        bundle: the output, and what it refers to.
        due: what is to be woven.
        files: of the sources; what is listed stays there.
    """
    total = 0
    try:
        for step in _reads(due):
            found = snapshot_bytes(bundle, step.source, step.time, files)
            if found is None or (total := total + found) > SMALL_BYTES:
                return False
    except (SnaploomError, SparkNeeded):
        return False  # reading the snapshot raises it again, with the snapshot's name
    return bool(due)


def _reads(due: Sequence[PlannedSnapshot]) -> Iterator[ReadSource]:
    """Every read of a source: what two snapshots read may be read twice."""
    for snapshot in due:
        for step in snapshot.steps:
            if isinstance(step, ReadSource):
                yield step
