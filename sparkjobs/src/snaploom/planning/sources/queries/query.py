"""The part shared by both kinds of queries."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass

from snaploom.planning.sources.declared import DeclaredSource, NoSnapshots


@dataclass(frozen=True)
class QuerySource(DeclaredSource, ABC):
    """A source that reads other sources, and nothing else."""

    @property
    def no_snapshots(self) -> NoSnapshots:
        """The sources that it reads."""
        read = ", ".join(f"DataSource/{name}" for name in self.source.spec.reads)
        return NoSnapshots(self.field, "no snapshot", f"check what {read} has")
