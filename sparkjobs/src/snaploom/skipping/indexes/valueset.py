"""VALUE_SET, PARTITION and PREFIX: the distinct values of each file, or their beginnings, if few.

A kept prefix that is shorter than the length is a whole text; one of full length stands for every
text that begins with it. Texts are cut at bytes, and bytes is what is compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from snaploom.errors import IndexNotPossible
from snaploom.skipping.core.definition import IndexDefinition, arrow_type
from snaploom.skipping.core.filetable import FileTable, Mask
from snaploom.skipping.core.predicates import (
    Comparison,
    Contains,
    EndsWith,
    In,
    Leaf,
    Operator,
    StartsWith,
)
from snaploom.skipping.core.valueorder import byte_buffers, key_of
from snaploom.skipping.indexes.base import Feed, FooterColumn, ProvedFields
from snaploom.skipping.indexes.columns import (
    DistinctBuilder,
    as_mask,
    check_parameters,
    check_terms,
    compare,
    holds,
    integer_parameter,
    kept_keys,
    kept_known,
    kept_lists,
    normalised,
    only_where,
    short_lists,
    with_one_value,
    without_values,
)

FIELD = "set"
DEFAULT_LIMIT = 100
"""Most distinct values of a file that are kept; with more, nothing is known about it."""
MOST = 100_000
"""Largest limit: with more values, a Bloom filter is smaller and as good."""


@dataclass(frozen=True)
class ValueSet:
    """The distinct values of each file, if there are few."""

    name: str = "VALUE_SET"

    def check(self, definition: IndexDefinition) -> None:
        """Any one term; parameter `limit`."""
        check_terms(definition)
        check_parameters(definition, ("limit",))
        _limit(definition)

    def fields(self, definition: IndexDefinition) -> Mapping[str, pa.DataType]:
        return {FIELD: pa.list_(arrow_type(definition.term.data_type))}

    def feed(self, definition: IndexDefinition) -> Feed:
        return Feed.VALUES

    def builder(self, definition: IndexDefinition) -> DistinctBuilder:
        return DistinctBuilder(FIELD, arrow_type(definition.term.data_type), _limit(definition))

    def from_footers(
        self, definition: IndexDefinition, columns: Sequence[FooterColumn]
    ) -> ProvedFields:
        is_empty, is_single = without_values(columns[0]), with_one_value(columns[0])
        values = normalised(columns[0].minimum.filter(pa.array(is_single)))
        return ProvedFields(
            is_empty | is_single, {FIELD: short_lists(values, is_single, is_empty | is_single)}
        )

    def may_match(self, definition: IndexDefinition, files: FileTable, leaf: Leaf) -> Mask | None:
        lists = kept_lists(files, definition.index_id, FIELD, definition.term.data_type)
        matching = holds(leaf, lists.keys, definition.term.data_type)
        return None if matching is None else lists.any_of(matching)

    def unserved(self, definition: IndexDefinition, leaf: Leaf) -> str:
        return "a set of values proves nothing about this condition"


def _limit(definition: IndexDefinition) -> int:
    return integer_parameter(definition, "limit", DEFAULT_LIMIT, 1, MOST)


VALUE_SET = ValueSet()


PARTITION_FIELD = "value"


class PartitionBuilder(DistinctBuilder):
    """Collects the one value of a file; nothing is known of a file that has two."""

    def finish(self) -> Mapping[str, object]:
        values = self._distinct.values()
        return {self._field: values[0].as_py() if values is not None and len(values) else None}


@dataclass(frozen=True)
class Partition:
    """The one value that a partition column has in each file."""

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
        return {PARTITION_FIELD: arrow_type(definition.term.data_type)}

    def feed(self, definition: IndexDefinition) -> Feed:
        return Feed.VALUES

    def builder(self, definition: IndexDefinition) -> PartitionBuilder:
        data_type = arrow_type(definition.term.data_type)
        return PartitionBuilder(PARTITION_FIELD, data_type, limit=1)

    def from_footers(
        self, definition: IndexDefinition, columns: Sequence[FooterColumn]
    ) -> ProvedFields:
        is_empty, is_single = without_values(columns[0]), with_one_value(columns[0])
        values = only_where(is_single, normalised(columns[0].minimum))
        return ProvedFields(is_empty | is_single, {PARTITION_FIELD: values})

    def may_match(self, definition: IndexDefinition, files: FileTable, leaf: Leaf) -> Mask | None:
        data_type = definition.term.data_type
        keys = kept_keys(files, definition.index_id, PARTITION_FIELD, data_type)
        matching = holds(leaf, keys, data_type)
        if matching is None:
            return None
        return matching | ~kept_known(files, definition.index_id, PARTITION_FIELD)

    def unserved(self, definition: IndexDefinition, leaf: Leaf) -> str:
        return "the value of a partition proves nothing about this condition"


PARTITION = Partition()


PREFIX_FIELD = "prefixes"
DEFAULT_LENGTH = 8
MOST_PREFIXES = 200


class PrefixBuilder(DistinctBuilder):
    """Collects the distinct prefixes of one file."""

    def __init__(self, length: int, limit: int) -> None:
        super().__init__(PREFIX_FIELD, pa.large_binary(), limit)
        self._length = length

    def add(self, columns: Sequence[pa.Array]) -> None:
        self._distinct.add(_beginnings(pc.unique(columns[0].drop_null()), self._length))


@dataclass(frozen=True)
class Prefix:
    """The distinct beginnings of each file's texts, if there are few."""

    name: str = "PREFIX"

    def check(self, definition: IndexDefinition) -> None:
        """One term of text or binary; parameters `length` (bytes) and `limit`."""
        check_terms(definition, types=("string", "binary"))
        check_parameters(definition, ("length", "limit"))
        _length(definition)
        _prefix_limit(definition)

    def fields(self, definition: IndexDefinition) -> Mapping[str, pa.DataType]:
        return {PREFIX_FIELD: pa.list_(pa.large_binary())}

    def feed(self, definition: IndexDefinition) -> Feed:
        return Feed.VALUES

    def builder(self, definition: IndexDefinition) -> PrefixBuilder:
        return PrefixBuilder(_length(definition), _prefix_limit(definition))

    def from_footers(
        self, definition: IndexDefinition, columns: Sequence[FooterColumn]
    ) -> ProvedFields:
        """The one prefix, where the least and the greatest value have the same."""
        column, length = columns[0], _length(definition)
        least, greatest = (_beginnings(each, length) for each in (column.minimum, column.maximum))
        is_whole = as_mask(pc.less(pc.binary_length(least), length))
        is_single = as_mask(pc.equal(least, greatest)) & (~is_whole | with_one_value(column))
        is_single &= as_mask(pc.greater(column.values, 0))
        proved = without_values(column) | is_single
        lists = short_lists(least.filter(pa.array(is_single)), is_single, proved)
        return ProvedFields(proved, {PREFIX_FIELD: lists})

    def may_match(self, definition: IndexDefinition, files: FileTable, leaf: Leaf) -> Mask | None:
        """Whether a text with some kept prefix may make the leaf TRUE."""
        lists = kept_lists(files, definition.index_id, PREFIX_FIELD, definition.term.data_type)
        if isinstance(lists.keys, np.ndarray):
            return None
        length = _length(definition)
        of_full_length = _open_ended(lists.keys, length, leaf)
        whole = holds(leaf, lists.keys, definition.term.data_type)
        if of_full_length is None or whole is None:
            return None
        is_whole = np.diff(byte_buffers(lists.keys)[0]) < length
        return lists.any_of(np.where(is_whole, whole, of_full_length))

    def unserved(self, definition: IndexDefinition, leaf: Leaf) -> str:
        if isinstance(leaf, Contains | EndsWith):
            return "prefixes prove nothing about the middle or the end of a text: TOKENS does"
        return "prefixes prove nothing about this condition"


def _beginnings(texts: pa.LargeBinaryArray, length: int) -> pa.LargeBinaryArray:
    offsets, data = byte_buffers(texts)
    sizes = np.minimum(np.diff(offsets), length)
    bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    places = np.repeat(offsets[:-1] - bounds[:-1], sizes) + np.arange(bounds[-1])
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(data[places])]
    cut = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(texts), buffers)
    return only_where(as_mask(texts.is_valid()), cut)


def _open_ended(prefixes: pa.LargeBinaryArray, length: int, leaf: Leaf) -> Mask | None:
    """For each prefix, whether some text that begins with it makes a leaf TRUE."""
    match leaf:
        case Comparison(_, Operator.EQ, value):
            return compare(prefixes, Operator.EQ, _bytes(value)[:length])
        case In(_, values, False):
            cut = pa.array({_bytes(value)[:length] for value in values}, arrow_type("binary"))
            return as_mask(pc.is_in(prefixes, value_set=cut))
        case Comparison(_, Operator.LT | Operator.LE as operator, value):
            # The least text that begins with the prefix is the prefix itself.
            return compare(prefixes, operator, _bytes(value))
        case Comparison(_, Operator.GT | Operator.GE, value):
            # There is no greatest: it is beyond the value unless the prefix itself is before it.
            return compare(prefixes, Operator.GE, _bytes(value)[:length])
        case StartsWith(_, prefix, False):
            return as_mask(pc.starts_with(prefixes, pattern=prefix[:length]))
        case StartsWith(_, prefix, True) if len(prefix) <= length:
            return ~as_mask(pc.starts_with(prefixes, pattern=prefix))
        case Comparison(_, Operator.NE) | In() | StartsWith():
            return np.ones(len(prefixes), dtype=np.bool_)
        case _:
            return None


def _bytes(value: object) -> bytes:
    key = key_of(value, "binary")  # type: ignore[arg-type]
    return key if isinstance(key, bytes) else b""


def _length(definition: IndexDefinition) -> int:
    return integer_parameter(definition, "length", DEFAULT_LENGTH, 1, 256)


def _prefix_limit(definition: IndexDefinition) -> int:
    return integer_parameter(definition, "limit", MOST_PREFIXES, 1, 100_000)


PREFIX = Prefix()
