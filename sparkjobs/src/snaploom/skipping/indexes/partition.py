"""PARTITION: the one value that a partition column has in each file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from snaploom.errors import IndexNotPossible
from snaploom.skipping.core.definition import IndexDefinition
from snaploom.skipping.core.filetable import FileTable, Mask
from snaploom.skipping.core.predicates import Leaf
from snaploom.skipping.core.terms import arrow_type
from snaploom.skipping.indexes.base import Feed, FooterColumn, ProvedFields
from snaploom.skipping.indexes.checks import check_parameters, check_terms
from snaploom.skipping.indexes.columns import (
    DistinctBuilder,
    holds,
    kept_keys,
    kept_known,
    normalised,
)
from snaploom.skipping.indexes.footerproofs import only_where, with_one_value, without_values

FIELD = "value"


class PartitionBuilder(DistinctBuilder):
    """Collects the one value of a file; nothing is known of a file that has two."""

    def finish(self) -> Mapping[str, object]:
        """Return the row."""
        values = self._distinct.values()
        return {FIELD: values[0].as_py() if values is not None and len(values) else None}


@dataclass(frozen=True)
class Partition:
    """The index type."""

    name: str = "PARTITION"

    def check(self, definition: IndexDefinition) -> None:
        """One top-level column; the caller ensures that it is a partition column (rule S11)."""
        check_terms(definition)
        check_parameters(definition, ())
        names = definition.term.names
        if names is None or len(names) != 1:
            raise IndexNotPossible(
                f"{definition.term.label} is no partition column",
                found=definition.term.label,
                expected="a partition column",
                hint="declare MIN_MAX or VALUE_SET on it",
            )

    def fields(self, definition: IndexDefinition) -> Mapping[str, pa.DataType]:
        """The value."""
        return {FIELD: arrow_type(definition.term.data_type)}

    def feed(self, definition: IndexDefinition) -> Feed:
        """Values as they are."""
        return Feed.VALUES

    def builder(self, definition: IndexDefinition) -> PartitionBuilder:
        """A collector for one file."""
        return PartitionBuilder(arrow_type(definition.term.data_type), limit=1)

    def from_footers(
        self, definition: IndexDefinition, columns: Sequence[FooterColumn]
    ) -> ProvedFields:
        """The value, where the least equals the greatest."""
        is_empty, is_single = without_values(columns[0]), with_one_value(columns[0])
        values = only_where(is_single, normalised(columns[0].minimum))
        return ProvedFields(is_empty | is_single, {FIELD: values})

    def may_match(self, definition: IndexDefinition, files: FileTable, leaf: Leaf) -> Mask | None:
        """Whether the value makes the leaf TRUE: exact."""
        data_type = definition.term.data_type
        keys = kept_keys(files, definition.index_id, FIELD, data_type)
        matching = holds(leaf, keys, data_type)
        if matching is None:
            return None
        return matching | ~kept_known(files, definition.index_id, FIELD)

    def unserved(self, definition: IndexDefinition, leaf: Leaf) -> str:
        """Reason why the leaf is not answered."""
        return "the value of a partition proves nothing about this condition"


PARTITION = Partition()
