"""What is asked of one run beyond its declarations; without Spark."""

from __future__ import annotations

from dataclasses import dataclass, replace

from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.planning.selection import EVERYTHING, Selection

MOST_PARALLEL_SNAPSHOTS = 16
"""Snapshots of one output that may be woven at a time: each needs the memory of a weave, and beyond
some of them the driver, which plans them all, is what they wait for."""


@dataclass(frozen=True)
class RunOptions:
    """How a run departs from publishing everything that is due."""

    selection: Selection = EVERYTHING
    """Which snapshots."""
    keep_going: bool = False
    """Whether a snapshot that fails leaves the later ones their turn."""
    sample: float | None = None
    """Share of the root's rows to weave, chosen by a hash of `rootKey`; None for all."""
    parallel: int = 1
    """How many outputs are woven at a time."""
    parallel_snapshots: int = 1
    """How many snapshots of an output are woven at a time; they are published in their order."""
    is_strict: bool = False
    """Whether a root without any snapshot is a failure, whatever `run.onEmptyRoot` is."""
    reason: str = ""
    """Why a snapshot is restated, for people."""
    allow: Allowances = NO_ALLOWANCES
    """What declarations may use beyond the built-in lists."""

    def allowing(self, allow: Allowances) -> RunOptions:
        """The same with what declarations may use."""
        return replace(self, allow=allow)


AS_DECLARED = RunOptions()
"""Everything that is due, until something fails."""
