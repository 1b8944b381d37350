"""BLOOM_FILTER over the hashes of each file's values, and TOKENS over the pieces of its texts.

The entries of a Bloom filter are Spark's `xxhash64` of the values, in their own type (rule S15), so
the filters are those of Flint, bit for bit, where the size is the same. A filter is sized when its
file was seen, so it never holds more than it was made for; a file with too many distinct values is
unknown.

A text that contains a piece contains every n-gram (of bytes) of it. So TOKENS drop a file when one
n-gram of the piece is proved absent; pieces shorter than an n-gram prove nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from snaploom.errors import IndexNotPossible
from snaploom.skipping.core.definition import IndexDefinition, Value, arrow_type
from snaploom.skipping.core.filetable import FileTable, Mask, field_column
from snaploom.skipping.core.hashes import BloomColumn, BloomFilter, ItemHashes, xxhash64
from snaploom.skipping.core.predicates import (
    Comparison,
    Contains,
    EndsWith,
    In,
    Leaf,
    Operator,
    Residue,
    StartsWith,
)
from snaploom.skipping.core.valueorder import Int64s, byte_buffers, is_text
from snaploom.skipping.indexes.base import Feed, FooterColumn, ProvedFields
from snaploom.skipping.indexes.columns import (
    DistinctBuilder,
    check_parameters,
    check_terms,
    integer_parameter,
    same_in,
    without_values,
)
from snaploom.types.schemas import INTEGER_BITS

FIELD = "words"
CAPACITY = 1_000_000
"""Most distinct values of a file when `ndv` is not given: 8 MB of hashes while it is built."""
LEAST_ITEMS = 64
"""Items for which the smallest filter is sized: in fewer bits (Spark's choice for one item is a
single word) the hash functions fall together, and wrong yeses are far more than `fpp`."""
MOST_CAPACITY = 20_000_000
"""Values of the largest filter, which has 24 MB for a share of 1 % of wrong yeses."""
MOST_PROBES = 100_000_000
"""Most probes (literals times files) of one condition; about three seconds on one core."""
ITEMS = "items"
"""Parameter: what is put. `HASHES`, or `VALUES` as Xskipper does: integers widened to 64 bits and
text as it is, no other types. The form XSKIPPER of a store needs `VALUES`."""
HASHES, VALUES = "HASHES", "VALUES"

_PARAMETERS = ("fpp", "ndv", "num_candidates", ITEMS)


class BloomFilterBuilder(DistinctBuilder):
    """Collects the distinct items of one file, 64 bits each, then fills a filter."""

    def __init__(
        self, false_positives: float, items: int | None, puts_values: bool = False
    ) -> None:
        super().__init__(FIELD, pa.int64(), CAPACITY if items is None else items)
        self._false_positives = false_positives
        self._items = items
        self._puts_values = puts_values

    def add(self, columns: Sequence[pa.Array]) -> None:
        self._distinct.add(_packed(columns[0]) if self._puts_values else columns[0])

    def finish(self) -> Mapping[str, object]:
        """Return the row; no filter where there are more values than it could hold (rule S10)."""
        distinct = self._distinct.values()
        return {self._field: None if distinct is None else self._filled(distinct.to_numpy())}

    def _filled(self, distinct: Int64s) -> bytes:
        items = self._items or max(LEAST_ITEMS, len(distinct))
        bloom = BloomFilter.sized(items, self._false_positives)
        bloom.put(_unpacked(distinct) if self._puts_values else ItemHashes.of_longs(distinct))
        return bloom.serialised()


def _packed(values: pa.Array) -> pa.Array:
    values = values.drop_null()
    if pa.types.is_integer(values.type):
        hashes = ItemHashes.of_longs(values.cast(pa.int64()).to_numpy())
    else:
        hashes = ItemHashes.of_bytes(values)
    second = hashes.second.astype(np.int64) & 0xFFFF_FFFF
    return pa.array((hashes.first.astype(np.int64) << 32) | second)


def _unpacked(packed: Int64s) -> ItemHashes:
    return ItemHashes((packed >> 32).astype(np.int32), packed.astype(np.int32))


@dataclass(frozen=True)
class BloomFilterIndex:
    """A Bloom filter over the hashes of each file's values, for point look-ups."""

    name: str = "BLOOM_FILTER"

    def check(self, definition: IndexDefinition) -> None:
        """Any one term; `fpp`, `ndv`, `items`, and `num_candidates` (which changes nothing)."""
        check_terms(definition)
        check_parameters(definition, _PARAMETERS)
        false_positives(definition)
        _items(definition)
        text, data_type = definition.parameter(ITEMS, HASHES), definition.term.data_type
        if text not in (HASHES, VALUES):
            raise IndexNotPossible(
                f"parameter {ITEMS} of {definition.label} is not possible",
                found=text,
                expected=f"{HASHES} or {VALUES}",
                hint="choose a number in these bounds",
            )
        if text == VALUES and data_type not in (*INTEGER_BITS, "string", "binary"):
            raise IndexNotPossible(
                f"{definition.label} cannot hold values",
                found=data_type,
                expected="a column of integers or text",
                hint=f"leave {ITEMS} out: hashes are of any type",
            )

    def fields(self, definition: IndexDefinition) -> Mapping[str, pa.DataType]:
        return {FIELD: pa.large_binary()}

    def feed(self, definition: IndexDefinition) -> Feed:
        return Feed.VALUES if _puts_values(definition) else Feed.HASHES

    def builder(self, definition: IndexDefinition) -> BloomFilterBuilder:
        return BloomFilterBuilder(
            false_positives(definition), _items(definition), _puts_values(definition)
        )

    def from_footers(
        self, definition: IndexDefinition, columns: Sequence[FooterColumn]
    ) -> ProvedFields:
        """An empty filter, where the footer proves that there is no value."""
        is_empty = without_values(columns[0])
        return ProvedFields(
            is_empty, same_in(is_empty, self.builder(definition).finish(), self.fields(definition))
        )

    def may_match(self, definition: IndexDefinition, files: FileTable, leaf: Leaf) -> Mask | None:
        """Whether the filter may contain the value, or one of a list."""
        column = field_column(definition.index_id, FIELD)
        filters = files.derived(f"{column} filters", lambda: BloomColumn(files.column(column)))
        values = _values(leaf)
        if values is None or len(values) * len(filters) > MOST_PROBES:
            return None
        items = _item_hashes(definition, values)
        return None if items is None else filters.might_contain_any(items)

    def unserved(self, definition: IndexDefinition, leaf: Leaf) -> str:
        match leaf:
            case In(_, values, False):
                return f"{len(values)} values times its files are more than {MOST_PROBES:,} probes"
            case Comparison(_, Operator.EQ):
                return "the imported filters do not hold values of this type"
            case Comparison(_, Operator.NE) | In():
                return "a Bloom filter proves only that values are absent: VALUE_SET serves <>"
            case Comparison():
                return "a range needs MIN_MAX"
            case Residue():
                return "a remainder needs MIN_MAX or VALUE_SET"
            case StartsWith():
                return "a prefix needs MIN_MAX, PREFIX or VALUE_SET"
            case _:
                return "a piece of text needs TOKENS or VALUE_SET"


def _values(leaf: Leaf) -> tuple[Value, ...] | None:
    match leaf:
        case Comparison(_, Operator.EQ, value):
            return (value,)
        case In(_, values, False):
            return values
        case _:
            return None


def _item_hashes(definition: IndexDefinition, values: Sequence[Value]) -> ItemHashes | None:
    data_type = definition.term.data_type
    if not _puts_values(definition):
        return ItemHashes.of_longs(xxhash64(values, data_type))
    if data_type in INTEGER_BITS:
        return ItemHashes.of_longs(np.array(values, dtype=np.int64))
    if is_text(data_type):
        return ItemHashes.of_bytes(pa.array(values, arrow_type(data_type)))
    return None


def false_positives(definition: IndexDefinition) -> float:
    """The parameter `fpp`, the share of wrong yeses; `IndexNotPossible` outside 0 to 1."""
    text = definition.parameter("fpp", "0.01")
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if 0.0 < share < 1.0:
        return share
    raise IndexNotPossible(
        f"parameter fpp of {definition.label} is not possible",
        found=text,
        expected="a number between 0 and 1",
        hint="the default is 0.01",
    )


def _puts_values(definition: IndexDefinition) -> bool:
    return definition.parameter(ITEMS, HASHES) == VALUES


def _items(definition: IndexDefinition) -> int | None:
    if not definition.parameter("ndv", ""):
        return None
    return integer_parameter(definition, "ndv", CAPACITY, 1, MOST_CAPACITY)


BLOOM_FILTER = BloomFilterIndex()


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
        super().add([pa.array(n_grams(columns[0].drop_null(), self._size))])


@dataclass(frozen=True)
class Tokens(BloomFilterIndex):
    """A Bloom filter over the pieces of fixed length (n-grams) of each file's texts."""

    name: str = "TOKENS"

    def check(self, definition: IndexDefinition) -> None:
        """One term of text or binary; parameters `n` (bytes of an n-gram) and `fpp`."""
        check_terms(definition, types=("string", "binary"))
        check_parameters(definition, ("n", "fpp"))
        _size(definition)
        false_positives(definition)

    def feed(self, definition: IndexDefinition) -> Feed:
        return Feed.VALUES

    def builder(self, definition: IndexDefinition) -> TokensBuilder:
        return TokensBuilder(_size(definition), false_positives(definition))

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
