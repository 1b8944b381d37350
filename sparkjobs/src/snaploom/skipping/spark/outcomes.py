"""What came of one request: data for statistics and for people."""

from __future__ import annotations

from dataclasses import dataclass

from snaploom.skipping.evaluation import ClauseReport


@dataclass(frozen=True)
class ClauseOutcome:
    """What one part of the condition did to the files of this query."""

    text: str
    """The part, as people write it."""
    report: ClauseReport
    """Which indexes served it, and why others did not."""
    dropped: int
    """Files of the listing that only it would drop."""
    hints: tuple[str, ...] = ()
    """What would let an index serve it."""


@dataclass(frozen=True)
class IndexOutcome:
    """What one skipping index did."""

    uri: str
    """Where it is kept."""
    target: str
    """What it is an index of."""
    labels: tuple[str, ...] = ()
    """Its indexes: `MIN_MAX(price)`."""
    unused: tuple[str, ...] = ()
    """Why it, or a part of it, was not used."""
    is_used: bool = False
    stale: int = 0
    """Files that it knows otherwise than they are: read."""
    missing: int = 0
    """Files that it does not know: read."""
    dropped: int = 0
    """Files that it proves are not needed."""
    dropped_bytes: int = 0
    """Their size."""
    seconds: float = 0.0
    """What asking it took."""
    clauses: tuple[ClauseOutcome, ...] = ()
    """Part by part; only when explaining."""


@dataclass(frozen=True)
class RelationOutcome:
    """What was decided about one relation of files."""

    name: str
    """The table, or where the files are."""
    mode: str
    """`estimate` while the plan is optimised, `list` when it is run."""
    files: int = 0
    """Files that would be read without skipping."""
    bytes: int = 0
    """Their size."""
    kept_files: int = 0
    kept_bytes: int = 0
    seconds: float = 0.0
    """What deciding took."""
    condition: str = ""
    """What is asked of each row; only when explaining."""
    indexes: tuple[IndexOutcome, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why no index was asked."""
    is_evaluated_only: bool = False
    """Whether every file was read nevertheless."""

    @property
    def dropped_files(self) -> int:
        """Files that are not needed."""
        return self.files - self.kept_files

    @property
    def dropped_bytes(self) -> int:
        """Their size."""
        return self.bytes - self.kept_bytes
