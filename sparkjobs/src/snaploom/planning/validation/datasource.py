"""DataSource: the checks of its kind, and of the references that every kind has."""

from __future__ import annotations

from snaploom.models.datasource import DataSource
from snaploom.planning.commonchecks.fields import Findings
from snaploom.planning.commonchecks.scope import Scope
from snaploom.planning.sources.registry import declared


def source_findings(source: DataSource, scope: Scope) -> Findings:
    """Everything that is wrong with one source, references included."""
    return (*declared(source).findings(scope), *_references(source, scope))


def _references(source: DataSource, scope: Scope) -> Findings:
    variant = source.spec.variant
    path = f"spec.{DataSource.variant_of(source.spec)}"
    references = (
        ("MetadataApplicator", "metadataApplicators", variant.metadata_applicators),
        ("FieldTransformer", "fieldTransformers", variant.field_transformers),
    )
    return tuple(
        finding
        for kind, field, names in references
        for index, name in enumerate(names)
        for finding in scope.missing(kind, name, source, f"{path}.{field}[{index}]")
    )
