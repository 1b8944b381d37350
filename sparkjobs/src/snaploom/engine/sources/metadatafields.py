"""MetadataApplicators: metadata that declarations attach to fields of a source, in order.

It ends up where Spark keeps metadata: in the schemas of the manifest, and in the footers of Parquet
files unless `columnMetadata` is MANIFEST (rule W31).
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import types as spark

from snaploom.engine.columnmetadata import Metadata, changed
from snaploom.engine.sources.selectors import is_selected
from snaploom.errors import SourceSchemaInvalid
from snaploom.models.metadataapplicator import ApplicatorBehaviour, MetadataApplicator
from snaploom.planning.regexes import RegexError


def applied(
    schema: spark.StructType, applicators: Iterable[MetadataApplicator]
) -> spark.StructType:
    """The schema with the metadata that the applicators attach, one after the other.

    Raises:
        SourceSchemaInvalid: a selector's pattern cannot be judged for a coordinate.
    """
    for applicator in applicators:
        schema = _applied(schema, applicator)
    return schema


def _applied(schema: spark.StructType, applicator: MetadataApplicator) -> spark.StructType:
    selectors = applicator.spec.field_selectors

    def change(coordinate: str, metadata: Metadata) -> Metadata:
        try:
            selected = is_selected(selectors, coordinate, metadata)
        except RegexError as error:
            raise SourceSchemaInvalid(
                f"a regular expression cannot be applied: {error}",
                resource=applicator.identity,
                path="spec.fieldSelectors",
                found=coordinate[:256],
                hint="narrow the selectors, or rename the field by a FieldTransformer",
            ) from error
        return _attached(metadata, applicator) if selected else metadata

    return changed(schema, change)


def _attached(metadata: Metadata, applicator: MetadataApplicator) -> Metadata:
    given: Metadata = dict(applicator.spec.metadata)
    match applicator.spec.behaviour:
        case ApplicatorBehaviour.IGNORE:
            return given | metadata
        case ApplicatorBehaviour.MERGE:
            return metadata | given
        case ApplicatorBehaviour.REPLACE:
            return given
