"""The kinds of declared sources, the columns that they may have, and circles between them."""

from collections.abc import Iterable, Mapping, Sequence

from snaploom.models.datasource import DataSource
from snaploom.models.fieldtransformer import FieldTransformer, Transformer
from snaploom.models.findings import Finding, make_finding
from snaploom.policy.fields import Findings
from snaploom.policy.references import DeclaredColumns, reads_of
from snaploom.sources.databases.declared import DatabaseSource
from snaploom.sources.declared import DeclaredSource
from snaploom.sources.files.declared import FileSource
from snaploom.sources.queries.declared import ComplexQuery, SimpleQuery
from snaploom.sources.tables.declared import TableSource

# The kinds of sources, one a line. Their readers are in the engine's registry.

KINDS: tuple[type[DeclaredSource], ...] = (
    FileSource,
    TableSource,
    DatabaseSource,
    SimpleQuery,
    ComplexQuery,
)
"""Every source is of exactly one."""


def declared(source: DataSource) -> DeclaredSource:
    """A source, as its kind understands it."""
    return next(found for kind in KINDS if (found := kind.of(source)) is not None)


# Circles of sources that read each other, which must not be.


def cycle_findings(sources: Mapping[str, DataSource]) -> Findings:
    """One finding for every circle of virtual sources (of intertwined ones, the shortest)."""
    reads = reads_of(sources)
    circles = (reads.circle(min(group)) for group in reads.circles)
    findings = (_finding(circle, sources) for circle in circles)
    return tuple(sorted(findings, key=lambda finding: finding.resource))


def _finding(circle: Sequence[str], sources: Mapping[str, DataSource]) -> Finding:
    owner = sources[circle[0]]
    return make_finding(
        "SL155",
        "virtual sources read each other in a circle",
        resource=owner.identity,
        path=f"spec.{DataSource.variant_of(owner.spec)}",
        found=" -> ".join(f"DataSource/{name}" for name in circle),
        expected="virtual sources that come from physical ones in the end",
    )


# All columns that a source may give to an output, as far as declarations show.


def shaped_columns(
    source: DataSource, transformers: Mapping[str, FieldTransformer]
) -> DeclaredColumns | None:
    """The columns that a source may give to an output; None where that is not known.

    A column that is dropped or renamed is counted in: the job reports what is left out.
    """
    read = declared(source).columns
    used = [transformers.get(name) for name in source.spec.variant.field_transformers]
    if read is None or any(one is None for one in used):
        return None
    changes = [change for one in used if one is not None for change in one.spec.transformers]
    added = _added(changes)
    if added is None:
        return None
    is_retyped = any(one.cast is not None or one.expression is not None for one in changes)
    types = {name: None if is_retyped else type_ for name, type_ in read.types.items()}
    return DeclaredColumns((*read.names, *added), types | {name.lower(): None for name in added})


def _added(changes: Iterable[Transformer]) -> tuple[str, ...] | None:
    """Names that transformers give; None where a pattern makes them."""
    renames = [change.rename for change in changes if change.rename is not None]
    if any(rename.to is None for rename in renames):
        return None
    return tuple(rename.to for rename in renames if rename.to is not None)
