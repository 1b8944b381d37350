"""The six kinds, as Python writes them: name first, and the fields of the spec by their names.

They are the models of the API, so that they validate, compare and round-trip as YAML does:
`load([...])` takes them, `to_yaml` writes them. Each has a name, a namespace and labels, and raises
`pydantic.ValidationError` with every fault.
"""

from collections.abc import Mapping, Sequence

from snaploom.models import skippingindex
from snaploom.models.common import ObjectMeta, Resource
from snaploom.models.datarelationship import DataRelationship as _DataRelationship
from snaploom.models.datarelationship import DataRelationshipSpec, Representation
from snaploom.models.datasource import ComplexVirtual, DataSourceSpec, HdfsLike, Jdbc, SimpleVirtual
from snaploom.models.datasource import DataSource as _DataSource
from snaploom.models.fieldtransformer import (
    ApplicatorBehaviour,
    CoordinateSelector,
    FieldTransformerSpec,
    MetadataApplicatorSpec,
    Transformer,
)
from snaploom.models.fieldtransformer import FieldTransformer as _FieldTransformer
from snaploom.models.fieldtransformer import MetadataApplicator as _MetadataApplicator
from snaploom.models.kinds import to_yaml
from snaploom.models.outputdataset import Check, DataModel, OutputDatasetSpec, OutputFolder
from snaploom.models.outputdataset import OutputDataset as _OutputDataset
from snaploom.models.run import RunSettings
from snaploom.models.skippingindex import SkippingIndex as _SkippingIndex

_NO_LABELS: Mapping[str, str] = {}


def _metadata(name: str, namespace: str | None, labels: Mapping[str, str]) -> ObjectMeta:
    return ObjectMeta(name=name, namespace=namespace, labels=dict(labels))


class _Written:
    """Methods of every kind besides its model."""

    def to_yaml(self) -> str:
        """The resource as YAML, with what was given and without defaults."""
        assert isinstance(self, Resource)
        return to_yaml([self])


class DataSource(_DataSource, _Written):
    """Location of data, and the distinction of its snapshots."""

    def __init__(
        self,
        name: str,
        *,
        files: HdfsLike | None = None,
        jdbc: Jdbc | None = None,
        simple_virtual: SimpleVirtual | None = None,
        complex_virtual: ComplexVirtual | None = None,
        namespace: str | None = None,
        labels: Mapping[str, str] = _NO_LABELS,
    ) -> None:
        """Declare a source.

        Args:
            files: `spec.hdfsLike`; exactly one of the four is given.
            jdbc: `spec.jdbc`.
            simple_virtual: `spec.simpleVirtual`.
            complex_virtual: `spec.complexVirtual`.
        """
        given = {
            "hdfs_like": files,
            "jdbc": jdbc,
            "simple_virtual": simple_virtual,
            "complex_virtual": complex_virtual,
        }
        spec = DataSourceSpec.model_validate({k: v for k, v in given.items() if v is not None})
        super().__init__(metadata=_metadata(name, namespace, labels), spec=spec)


class DataRelationship(_DataRelationship, _Written):
    """Columns that mean the same entity."""

    def __init__(
        self,
        name: str,
        *,
        representations: Sequence[Representation],
        namespace: str | None = None,
        labels: Mapping[str, str] = _NO_LABELS,
    ) -> None:
        """Declare a relationship.

        Args:
            representations: the ways in which the key is written.
        """
        spec = DataRelationshipSpec(representations=tuple(representations))
        super().__init__(metadata=_metadata(name, namespace, labels), spec=spec)


class FieldTransformer(_FieldTransformer, _Written):
    """Renames, casts, expressions and drops of fields, reusable by many sources."""

    def __init__(
        self,
        name: str,
        *,
        transformers: Sequence[Transformer],
        namespace: str | None = None,
        labels: Mapping[str, str] = _NO_LABELS,
    ) -> None:
        """Declare a transformer.

        Args:
            transformers: the changes, in order.
        """
        spec = FieldTransformerSpec(transformers=tuple(transformers))
        super().__init__(metadata=_metadata(name, namespace, labels), spec=spec)


class MetadataApplicator(_MetadataApplicator, _Written):
    """Metadata for fields, reusable by many outputs."""

    def __init__(
        self,
        name: str,
        *,
        field_selectors: Sequence[CoordinateSelector],
        fields_metadata: Mapping[str, str],
        behaviour: ApplicatorBehaviour = ApplicatorBehaviour.MERGE,
        namespace: str | None = None,
        labels: Mapping[str, str] = _NO_LABELS,
    ) -> None:
        """Declare an applicator.

        Args:
            field_selectors: the fields.
            fields_metadata: `spec.metadata`, which is attached to them.
            behaviour: treatment of metadata that a field already has.
        """
        spec = MetadataApplicatorSpec(
            behaviour=behaviour,
            field_selectors=tuple(field_selectors),
            metadata=dict(fields_metadata),
        )
        super().__init__(metadata=_metadata(name, namespace, labels), spec=spec)


class OutputDataset(_OutputDataset, _Written):
    """The sources to weave together, and the folder to publish to."""

    def __init__(
        self,
        name: str,
        *,
        data_model: DataModel,
        output_folder: OutputFolder,
        checks: Sequence[Check] = (),
        run: RunSettings | None = None,
        namespace: str | None = None,
        labels: Mapping[str, str] = _NO_LABELS,
    ) -> None:
        """Declare an output.

        Args:
            data_model: the sources, and how they may be joined.
            output_folder: location and form of published snapshots.
            checks: expectations about the woven rows.
            run: settings and triggers of jobs.
        """
        given: dict[str, object] = {"data_model": data_model, "output_folder": output_folder}
        if checks:
            given["checks"] = tuple(checks)
        if run is not None:
            given["run"] = run
        spec = OutputDatasetSpec.model_validate(given)
        super().__init__(metadata=_metadata(name, namespace, labels), spec=spec)


class SkippingIndex(_SkippingIndex, _Written):
    """The indexed files, the content of the index, and its place."""

    def __init__(
        self,
        name: str,
        *,
        target: skippingindex.IndexTarget,
        indexes: Sequence[skippingindex.Index],
        store: skippingindex.IndexStore,
        enabled: bool = True,
        where: str | None = None,
        refresh: skippingindex.Refresh | None = None,
        encryption: skippingindex.IndexEncryption | None = None,
        run: RunSettings | None = None,
        namespace: str | None = None,
        labels: Mapping[str, str] = _NO_LABELS,
    ) -> None:
        """Declare an index.

        Args:
            target: the files that are indexed.
            indexes: facts to keep about each file.
            store: location of the index.
            enabled: whether queries use it.
            where: chooses files by partition columns or path.
            refresh: refreshes of the index.
            encryption: of the index as a whole.
            run: settings and triggers of jobs.
        """
        given: dict[str, object] = {
            "target": target,
            "indexes": tuple(indexes),
            "store": store,
            "enabled": enabled,
        }
        rest = {"where": where, "refresh": refresh, "encryption": encryption, "run": run}
        given.update({key: value for key, value in rest.items() if value is not None})
        spec = skippingindex.SkippingIndexSpec.model_validate(given)
        super().__init__(metadata=_metadata(name, namespace, labels), spec=spec)
