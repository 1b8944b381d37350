"""DataSource: the checks of its variant, and of what every variant refers to."""

from __future__ import annotations

from snaploom.models.datasource import (
    ComplexVirtual,
    DataSource,
    HdfsLike,
    Jdbc,
    SimpleVirtual,
)
from snaploom.planning.validation.columns import snapshot_column_findings
from snaploom.planning.validation.fields import Findings
from snaploom.planning.validation.jdbc import jdbc_findings
from snaploom.planning.validation.physical import hdfs_like_findings
from snaploom.planning.validation.scope import Scope
from snaploom.planning.validation.virtual import complex_findings, simple_findings


def source_findings(source: DataSource, scope: Scope) -> Findings:
    """Everything that is wrong with one source, references included."""
    return (
        *_variant(source, scope),
        *snapshot_column_findings(source, scope),
        *_references(source, scope),
    )


def _variant(source: DataSource, scope: Scope) -> Findings:
    match source.spec.variant:
        case HdfsLike() as files:
            return hdfs_like_findings(files, source, scope.allow)
        case Jdbc() as table:
            return jdbc_findings(table, source, scope.allow, scope.judge_text)
        case SimpleVirtual() as query:
            return simple_findings(query, source, scope)
        case ComplexVirtual() as queries:
            return complex_findings(queries, source, scope)


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
