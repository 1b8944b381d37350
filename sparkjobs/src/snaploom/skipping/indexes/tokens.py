"""TOKENS: a Bloom filter over the pieces of fixed length (n-grams) of each file's texts.

A text that contains a piece contains every n-gram of it. So a file is dropped when one n-gram of
the piece is proved absent; pieces shorter than an n-gram prove nothing. N-grams are of bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from snaploom.skipping.core.definition import IndexDefinition
from snaploom.skipping.core.filetable import FileTable, Mask, field_column
from snaploom.skipping.core.hashes import BloomColumn, ItemHashes
from snaploom.skipping.core.predicates import (
    Comparison,
    Contains,
    EndsWith,
    In,
    Leaf,
    Operator,
    StartsWith,
)
from snaploom.skipping.core.terms import Value
from snaploom.skipping.core.valueorder import Int64s, byte_buffers
from snaploom.skipping.indexes.base import Feed, FooterColumn, ProvedFields
from snaploom.skipping.indexes.bloomfilter import BloomFilterBuilder, false_positives
from snaploom.skipping.indexes.checks import check_parameters, check_terms, integer_parameter
from snaploom.skipping.indexes.footerproofs import same_in, without_values

FIELD = "words"
DEFAULT_SIZE = 3
LARGEST_SIZE = 7
"""Bytes of the longest n-gram, which is kept as an integer."""
MOST_PIECES = 1_000
"""Most values of an IN list that are probed."""


class TokensBuilder(BloomFilterBuilder):
    """Collects the distinct n-grams of one file, then fills a filter."""

    def __init__(self, size: int, share: float) -> None:
        super().__init__(share, None)
        self._size = size

    def add(self, columns: Sequence[pa.Array]) -> None:
        """Add a batch of texts."""
        super().add([pa.array(n_grams(columns[0].drop_null(), self._size))])


@dataclass(frozen=True)
class Tokens:
    """The index type."""

    name: str = "TOKENS"

    def check(self, definition: IndexDefinition) -> None:
        """One term of text or binary; parameters `n` (bytes of an n-gram) and `fpp`."""
        check_terms(definition, types=("string", "binary"))
        check_parameters(definition, ("n", "fpp"))
        _size(definition)
        false_positives(definition)

    def fields(self, definition: IndexDefinition) -> Mapping[str, pa.DataType]:
        """The filter in Spark's own serialised form."""
        return {FIELD: pa.large_binary()}

    def feed(self, definition: IndexDefinition) -> Feed:
        """Values as they are."""
        return Feed.VALUES

    def builder(self, definition: IndexDefinition) -> TokensBuilder:
        """A collector for one file."""
        return TokensBuilder(_size(definition), false_positives(definition))

    def from_footers(
        self, definition: IndexDefinition, columns: Sequence[FooterColumn]
    ) -> ProvedFields:
        """An empty filter, where the footer proves that there is no value."""
        is_empty = without_values(columns[0])
        return ProvedFields(
            is_empty, same_in(is_empty, self.builder(definition).finish(), self.fields(definition))
        )

    def may_match(self, definition: IndexDefinition, files: FileTable, leaf: Leaf) -> Mask | None:
        """Whether every n-gram of the piece (or of one of several) may be in the file."""
        pieces, size = _pieces(leaf), _size(definition)
        if not 0 < len(pieces) <= MOST_PIECES or min(map(len, pieces)) < size:
            return None
        column = field_column(definition.index_id, FIELD)
        filters = files.derived(f"{column} filters", lambda: BloomColumn(files.column(column)))
        grams = (np.unique(n_grams(pa.array([piece], pa.large_binary()), size)) for piece in pieces)
        found = [filters.might_contain_all(ItemHashes.of_longs(gram)) for gram in grams]
        keep: Mask = np.logical_or.reduce(found)
        return keep

    def unserved(self, definition: IndexDefinition, leaf: Leaf) -> str:
        """Reason why the leaf is not answered."""
        pieces = _pieces(leaf)
        if len(pieces) > MOST_PIECES:
            return f"it probes {MOST_PIECES} texts at most: VALUE_SET serves long lists"
        if pieces:
            return f"a piece of less than {_size(definition)} bytes proves nothing"
        return "n-grams prove only that a piece is absent: a range needs MIN_MAX"


def n_grams(texts: pa.LargeBinaryArray, size: int) -> Int64s:
    """All pieces of a length in texts (no NULL among them), as big-endian integers."""
    offsets, data = byte_buffers(texts)
    lengths = np.maximum(np.diff(offsets) - (size - 1), 0)
    # Positions of all n-grams: those of each text one after another.
    before = np.cumsum(lengths) - lengths
    starts = np.arange(lengths.sum()) + np.repeat(offsets[:-1] - before, lengths)
    grams = np.zeros(len(starts), dtype=np.int64)
    for at in range(size):
        grams = (grams << 8) | data[starts + at]
    return grams


def _pieces(leaf: Leaf) -> tuple[bytes, ...]:
    match leaf:
        case Contains(_, piece) | EndsWith(_, piece) | StartsWith(_, piece, False):
            return (piece,)
        case Comparison(_, Operator.EQ, value):
            return _texts((value,))
        case In(_, values, False):
            return _texts(values)
        case _:
            return ()


def _texts(values: Sequence[Value]) -> tuple[bytes, ...]:
    texts = tuple(value for value in values if isinstance(value, bytes))
    return texts if len(texts) == len(values) else ()


def _size(definition: IndexDefinition) -> int:
    return integer_parameter(definition, "n", DEFAULT_SIZE, 2, LARGEST_SIZE)


TOKENS = Tokens()
