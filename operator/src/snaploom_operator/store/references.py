"""Keys of objects, and the references of a resource to others.

References never leave the namespace.
"""

from __future__ import annotations

from collections.abc import Iterator

from snaploom.models.common import GROUP
from snaploom.models.datarelationship import DataRelationship
from snaploom.models.datasource import DataSource
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.resource import Resource
from snaploom.models.skippingindex import SkippingIndex
from snaploom_operator.objectmetadata import metadata_of, number_of, text_in
from snaploom_operator.objects import JsonObject, Ref


def version_of(stored: JsonObject) -> int:
    """Its resourceVersion, an increasing number of etcd; -1 without one."""
    return number_of(text_in(metadata_of(stored), "resourceVersion"))


def group_of(stored: JsonObject) -> str:
    """Its API group; empty for the core group."""
    return text_in(stored, "apiVersion").rpartition("/")[0]


def ref_of(stored: JsonObject) -> Ref:
    """The key of an object; kinds of other groups include the group, since kind names repeat."""
    metadata = metadata_of(stored)
    return Ref(
        kind_key(group_of(stored), text_in(stored, "kind")),
        text_in(metadata, "namespace"),
        text_in(metadata, "name"),
    )


def kind_key(group: str, kind: str) -> str:
    """A kind in keys: `DataSource`, `Pod`, `SparkApplication.sparkoperator.k8s.io`."""
    return kind if group in ("", GROUP) else f"{kind}.{group}"


def references_of(resource: Resource) -> frozenset[Ref]:
    """Every object that a spec refers to."""
    namespace = resource.metadata.namespace or ""
    return frozenset(Ref(kind, namespace, name) for kind, name in _named(resource))


def _named(resource: Resource) -> Iterator[tuple[str, str]]:
    match resource:
        case DataSource():
            variant = resource.spec.variant
            yield from (("DataSource", name) for name in resource.spec.reads)
            yield from (("MetadataApplicator", name) for name in variant.metadata_applicators)
            yield from (("FieldTransformer", name) for name in variant.field_transformers)
        case DataRelationship():
            yield from (("DataSource", name) for name in resource.spec.data_sources)
        case OutputDataset():
            model = resource.spec.data_model
            yield "DataSource", model.root_data_source.data_source
            yield from (("DataSource", other.data_source) for other in model.other_data_sources)
            yield from (("DataRelationship", used.name) for used in model.data_relationships)
        case SkippingIndex():
            target = resource.spec.target
            if target.data_source is not None:
                yield "DataSource", target.data_source
            if target.output_dataset is not None:
                yield "OutputDataset", target.output_dataset
