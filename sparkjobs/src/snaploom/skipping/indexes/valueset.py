"""VALUE_SET: the distinct values of each file, if there are few."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from snaploom.skipping.core.definition import IndexDefinition
from snaploom.skipping.core.filetable import FileTable, Mask
from snaploom.skipping.core.predicates import Leaf
from snaploom.skipping.core.terms import arrow_type
from snaploom.skipping.indexes.base import Feed, FooterColumn, ProvedFields
from snaploom.skipping.indexes.checks import check_parameters, check_terms, integer_parameter
from snaploom.skipping.indexes.columns import DistinctBuilder, holds, kept_lists, normalised
from snaploom.skipping.indexes.footerproofs import short_lists, with_one_value, without_values

FIELD = "set"
DEFAULT_LIMIT = 100
"""Most distinct values of a file that are kept; with more, nothing is known about it."""
MOST = 100_000
"""Largest limit: with more values, a Bloom filter is smaller and as good."""


class ValueSetBuilder(DistinctBuilder):
    """Collects the distinct values of one file."""

    def finish(self) -> Mapping[str, object]:
        """Return the row."""
        values = self._distinct.values()
        return {FIELD: None if values is None else values.to_pylist()}


@dataclass(frozen=True)
class ValueSet:
    """The index type."""

    name: str = "VALUE_SET"

    def check(self, definition: IndexDefinition) -> None:
        """Any one term; parameter `limit`."""
        check_terms(definition)
        check_parameters(definition, ("limit",))
        _limit(definition)

    def fields(self, definition: IndexDefinition) -> Mapping[str, pa.DataType]:
        """The values, each once, no NULL among them."""
        return {FIELD: pa.list_(arrow_type(definition.term.data_type))}

    def feed(self, definition: IndexDefinition) -> Feed:
        """Values as they are."""
        return Feed.VALUES

    def builder(self, definition: IndexDefinition) -> ValueSetBuilder:
        """A collector for one file."""
        return ValueSetBuilder(arrow_type(definition.term.data_type), _limit(definition))

    def from_footers(
        self, definition: IndexDefinition, columns: Sequence[FooterColumn]
    ) -> ProvedFields:
        """The set where the footer proves it: no value, or one."""
        is_empty, is_single = without_values(columns[0]), with_one_value(columns[0])
        values = normalised(columns[0].minimum.filter(pa.array(is_single)))
        return ProvedFields(
            is_empty | is_single, {FIELD: short_lists(values, is_single, is_empty | is_single)}
        )

    def may_match(self, definition: IndexDefinition, files: FileTable, leaf: Leaf) -> Mask | None:
        """Whether some value of the set makes the leaf TRUE."""
        lists = kept_lists(files, definition.index_id, FIELD, definition.term.data_type)
        matching = holds(leaf, lists.keys, definition.term.data_type)
        return None if matching is None else lists.any_of(matching)

    def unserved(self, definition: IndexDefinition, leaf: Leaf) -> str:
        """Reason why the leaf is not answered."""
        return "a set of values proves nothing about this condition"


def _limit(definition: IndexDefinition) -> int:
    return integer_parameter(definition, "limit", DEFAULT_LIMIT, 1, MOST)


VALUE_SET = ValueSet()
