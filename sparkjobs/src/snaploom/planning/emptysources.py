"""Sources that have no snapshot at all: most often a glob that matches nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from snaploom.errors import RootEmpty
from snaploom.models.codes import make_finding
from snaploom.models.datasource import DataSource
from snaploom.models.finding import Finding
from snaploom.planning.bundle import Bundle
from snaploom.planning.intervals import SourceSnapshots
from snaploom.planning.sources.registry import declared
from snaploom.planning.tree import JoinTree

EMPTY_SOURCE = "SL307"


def empty_source_findings(
    bundle: Bundle, tree: JoinTree, offered: Mapping[str, SourceSnapshots]
) -> Iterator[Finding]:
    """A warning for every source of the tree without snapshots, for any missing mode."""
    for node in tree.nodes:
        if offered.get(node.source, SourceSnapshots()).is_empty:
            yield _finding(bundle.source(node.source))


def refuse_empty_root(root: DataSource, offered: SourceSnapshots) -> None:
    """Refuse a run whose root offers nothing, where that is not to pass as a warning.

    Raises:
        RootEmpty: nothing.
    """
    if not offered.is_empty:
        return
    finding = _finding(root)
    raise RootEmpty(
        "the root has no snapshot at all, so that nothing can be published",
        resource=finding.resource,
        path=finding.path,
        found=finding.found,
        expected=finding.expected,
        hint=f"{finding.hint}; to pass it as a warning, set run.onEmptyRoot to Warn and leave out "
        "--strict",
    )


def _finding(source: DataSource) -> Finding:
    reported = declared(source).no_snapshots
    return make_finding(
        EMPTY_SOURCE,
        "this source has no snapshot at all",
        resource=source.identity,
        path=f"spec.{reported.field}",
        found=reported.found,
        expected="at least one snapshot",
        hint=reported.hint,
    )
