"""A Bundle: one OutputDataset or SkippingIndex with everything that it refers to, frozen.

It is what every caller hands to planning and execution: the command line, a job in a cluster (as
an immutable ConfigMap), the webhook and the tests. It carries no status and no secret.
"""

from typing import Annotated

from annotated_types import MaxLen

from snaploom.models.base import ApiModel
from snaploom.models.datarelationship import DataRelationship
from snaploom.models.datasource import DataSource
from snaploom.models.fieldtransformer import FieldTransformer, MetadataApplicator
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.skippingindex import SkippingIndex

BUNDLE_FORMAT = 1
"""Format of the Bundle; a newer one is refused, older ones are read (rule P8)."""


class Bundle(ApiModel):
    """One runnable resource with everything that it refers to; exactly one of the first two."""

    one_of = ("outputDataset", "skippingIndex")

    format: int = BUNDLE_FORMAT
    output_dataset: OutputDataset | None = None
    skipping_index: SkippingIndex | None = None
    indexed_output: OutputDataset | None = None
    """The output whose published files the index is about; only for bundles of an index."""
    data_sources: Annotated[tuple[DataSource, ...], MaxLen(4000)] = ()
    """Every source that is read, directly or by a virtual one."""
    data_relationships: Annotated[tuple[DataRelationship, ...], MaxLen(2000)] = ()
    """Every relationship that the output names."""
    metadata_applicators: Annotated[tuple[MetadataApplicator, ...], MaxLen(4000)] = ()
    """Every applicator that a source names."""
    field_transformers: Annotated[tuple[FieldTransformer, ...], MaxLen(4000)] = ()
    """Every transformer that a source names."""

    @property
    def output(self) -> OutputDataset:
        """The output to weave; only for bundles of one."""
        assert self.output_dataset is not None
        return self.output_dataset

    @property
    def index(self) -> SkippingIndex:
        """The index to build; only for bundles of one."""
        assert self.skipping_index is not None
        return self.skipping_index

    @property
    def target_output(self) -> OutputDataset:
        """The output that the index is about; only for bundles of such an index."""
        assert self.indexed_output is not None
        return self.indexed_output

    @property
    def runnable(self) -> OutputDataset | SkippingIndex:
        """The resource that the bundle runs."""
        return self.index if self.output_dataset is None else self.output_dataset

    def source(self, name: str) -> DataSource:
        """The source of that name; validation has proved that it is there."""
        return next(source for source in self.data_sources if source.name == name)

    def relationship(self, name: str) -> DataRelationship:
        """The relationship of that name; validation has proved that it is there."""
        return next(item for item in self.data_relationships if item.name == name)
