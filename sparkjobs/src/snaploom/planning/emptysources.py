"""Sources that have no snapshot at all: most often a glob that matches nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from snaploom.errors import RootEmpty
from snaploom.models.codes import make_finding
from snaploom.models.datasource import DataSource, HdfsLike
from snaploom.models.finding import Finding
from snaploom.planning.bundle import Bundle
from snaploom.planning.intervals import SourceSnapshots
from snaploom.planning.prefix import UriPrefix
from snaploom.planning.tree import JoinTree

EMPTY_SOURCE = "SL307"


def empty_source_findings(
    bundle: Bundle, tree: JoinTree, offered: Mapping[str, SourceSnapshots]
) -> Iterator[Finding]:
    """A warning for every source of the tree that offers nothing, whatever its missing mode."""
    for node in tree.nodes:
        if offered.get(node.source, SourceSnapshots()).is_empty:
            yield _finding(bundle.source(node.source))


def refuse_empty_root(root: DataSource, offered: SourceSnapshots) -> None:
    """Refuse a run whose root offers nothing, where that is not to pass as a warning.

    Args:
        root: the source.
        offered: what it offers.

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
    files = source.spec.hdfs_like
    return make_finding(
        EMPTY_SOURCE,
        "this source has no snapshot at all",
        resource=source.identity,
        path="spec.hdfsLike.sourceUriGlobs" if files else f"spec.{source.variant_of(source.spec)}",
        found=_found(files),
        expected="at least one snapshot",
        hint=_hint(source),
    )


def _found(files: HdfsLike | None) -> str:
    if files is None:
        return "no snapshot"
    globs = ", ".join(files.source_uri_globs)
    if _is_in_rows(files):
        return f"no file matches {globs}, or none that does has a row"
    return f"no file matches {globs}"


def _is_in_rows(files: HdfsLike) -> bool:
    """Whether a column has the snapshot, so that files without rows have none."""
    field = files.snapshot.from_field_value
    if field is None:
        return False
    prefix = files.source_uri_prefix
    captured = () if prefix is None else UriPrefix.parse(prefix).names
    return field.field_name.casefold() not in map(str.casefold, captured)


def _hint(source: DataSource) -> str:
    files = source.spec.hdfs_like
    if files is None:
        read = ", ".join(f"DataSource/{name}" for name in source.spec.reads)
        return f"check what {read} has" if read else "check that the table has rows"
    return "check that the data is there, and the spelling of the globs"
