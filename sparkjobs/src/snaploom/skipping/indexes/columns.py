"""Common parts of index types: checks of declarations, kept columns, and proofs by footers."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from snaploom.errors import IndexNotPossible
from snaploom.skipping.core import predicates, valueorder
from snaploom.skipping.core.definition import IndexDefinition, Value, arrow_type
from snaploom.skipping.core.filetable import FileTable, Mask, field_column
from snaploom.skipping.indexes.base import FooterColumn, pack, unpack

SUPPORTED = (
    "boolean, tinyint, smallint, int, bigint, float, double, decimal, date, timestamp, "
    "timestamp_ntz, string, binary"
)


def check_terms(
    definition: IndexDefinition, count: int = 1, types: Collection[str] | None = None
) -> None:
    """Refuse another number of terms, or terms of other types; None for all keepable ones."""
    if len(definition.terms) != count:
        raise IndexNotPossible(
            f"{definition.type} is kept about {count} column{'s' * (count > 1)}",
            found=", ".join(term.label for term in definition.terms) or "none",
            expected=str(count),
            hint="declare one index for each column" if count == 1 else "name both columns",
        )
    for term in definition.terms:
        kept_as = arrow_type(term.data_type)
        if kept_as is None or (types is not None and term.data_type.split("(")[0] not in types):
            raise IndexNotPossible(
                f"{definition.type} cannot be kept about {term.label} of type {term.data_type}",
                found=term.data_type,
                expected=SUPPORTED if types is None else ", ".join(sorted(types)),
                hint="index an expression of a supported type over it, or one of its fields",
            )


def check_parameters(definition: IndexDefinition, names: Collection[str]) -> None:
    """Raise `IndexNotPossible` for parameters that the type does not have."""
    for name, _ in definition.parameters:
        if name not in names:
            raise IndexNotPossible(
                f"{definition.type} has no parameter {name}",
                found=name,
                expected=", ".join(sorted(names)) or "no parameters",
            )


def integer_parameter(
    definition: IndexDefinition, name: str, default: int, least: int, most: int
) -> int:
    """A parameter that is a whole number within bounds, else `IndexNotPossible`."""
    text = definition.parameter(name, str(default))
    if text.strip().isdecimal() and least <= int(text) <= most:
        return int(text)
    raise IndexNotPossible(
        f"parameter {name} of {definition.label} is not possible",
        found=text,
        expected=f"a whole number from {least} to {most}",
        hint=f"the default is {default}",
    )


# Distinct values of one file, collected up to a limit: memory is bounded whatever the file.

PENDING = 65_536
"""Values that are collected before duplicates are removed again."""


class DistinctValues:
    """The distinct non-null values of one file, or the fact that there are more than a limit."""

    def __init__(self, value_type: pa.DataType, limit: int) -> None:
        self._type = value_type
        self._limit = limit
        self._found = pa.array([], value_type)
        self._pending: list[pa.Array] = []
        self._waiting = 0

    @property
    def is_over(self) -> bool:
        """Whether more values than the limit were found: then they are not returned (rule S10)."""
        return len(self._found) > self._limit

    def add(self, values: pa.Array) -> None:
        """Add values, NULLs included."""
        if self.is_over:
            return
        distinct = pc.unique(normalised(values.drop_null()))
        self._pending.append(distinct)
        self._waiting += len(distinct)
        if self._waiting > max(PENDING, len(self._found)) or len(self._pending) > PENDING // 64:
            self._settle()

    def merge(self, other: bytes) -> None:
        """Add the `partial` of another collector with the same limit."""
        self.add(unpack(other)[0])

    def partial(self) -> bytes:
        """Collected values; one more than the limit stands for more."""
        self._settle()
        return pack([self._found])

    def values(self) -> pa.Array | None:
        """The values, or None if there are more than the limit."""
        self._settle()
        return None if self.is_over else self._found

    def _settle(self) -> None:
        if not len(self._found) and len(self._pending) == 1:
            # The values of one batch have no duplicates, and most files are one batch.
            self._found = self._pending[0][: self._limit + 1]
        else:
            joined = pa.concat_arrays([self._found, *self._pending])
            self._found = pc.unique(joined)[: self._limit + 1]
        self._pending, self._waiting = [], 0


class DistinctBuilder:
    """Collects the distinct values of one file, for a field that has them as a list."""

    def __init__(self, field: str, value_type: pa.DataType, limit: int) -> None:
        self._field = field
        self._distinct = DistinctValues(value_type, limit)

    def add(self, columns: Sequence[pa.Array]) -> None:
        self._distinct.add(columns[0])

    def merge(self, other: bytes) -> None:
        self._distinct.merge(other)

    def partial(self) -> bytes:
        return self._distinct.partial()

    def finish(self) -> Mapping[str, object]:
        values = self._distinct.values()
        return {self._field: None if values is None else values.to_pylist()}


def normalised(values: pa.Array) -> pa.Array:
    """Values with one zero and one NaN (rule S4)."""
    if not pa.types.is_floating(values.type):
        return values
    numbers = valueorder.ordered(values.to_numpy(zero_copy_only=False))
    return pa.array(numbers, values.type, mask=as_mask(values.is_null()))


# Kept lists of values: one list a file, asked value by value.


@dataclass(frozen=True)
class KeptLists:
    """Lists of all files, concatenated."""

    keys: valueorder.Keys
    valid: Mask | None
    """Mask of values that are not NULL; None for all."""
    offsets: valueorder.Int64s
    """Start of each file's list, and end of the last one."""
    known: Mask
    """Files whose list is kept."""

    def any_of(self, matching: Mask) -> Mask:
        """For each file, whether some value matches; True where the list is not kept."""
        if self.valid is not None:
            matching = matching & self.valid
        upto = np.concatenate([[0], np.cumsum(matching, dtype=np.int64)])
        found = upto[self.offsets[1:]] > upto[self.offsets[:-1]]
        return np.asarray(found | ~self.known, dtype=np.bool_)


def kept_lists(files: FileTable, index_id: str, field: str, data_type: str) -> KeptLists:
    """The lists that an index keeps in a field."""
    column = field_column(index_id, field)

    def find() -> KeptLists:
        lists = files.column(column)
        values = lists.values
        offsets = lists.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
        valid = as_mask(values.is_valid()) if values.null_count else None
        return KeptLists(
            valueorder.keys_of(values, data_type), valid, offsets, as_mask(lists.is_valid())
        )

    return files.derived(f"{column} lists", find)


# Common parts of index types: kept columns as keys, and leaves decided on them.

_NUMPY: dict[predicates.Operator, Callable[[valueorder.Int64s, np.int64], Mask]] = {
    predicates.Operator.EQ: np.equal,
    predicates.Operator.NE: np.not_equal,
    predicates.Operator.LT: np.less,
    predicates.Operator.LE: np.less_equal,
    predicates.Operator.GT: np.greater,
    predicates.Operator.GE: np.greater_equal,
}

_ARROW: dict[predicates.Operator, Callable[[pa.Array, pa.Scalar], pa.Array]] = {
    predicates.Operator.EQ: pc.equal,
    predicates.Operator.NE: pc.not_equal,
    predicates.Operator.LT: pc.less,
    predicates.Operator.LE: pc.less_equal,
    predicates.Operator.GT: pc.greater,
    predicates.Operator.GE: pc.greater_equal,
}


def kept_keys(files: FileTable, index_id: str, field: str, data_type: str) -> valueorder.Keys:
    """Keys of a kept field of all files."""
    column = field_column(index_id, field)
    return files.derived(
        f"{column} keys", lambda: valueorder.keys_of(files.column(column), data_type)
    )


def kept_known(files: FileTable, index_id: str, field: str) -> Mask:
    """For each file, whether a field is known."""
    column = field_column(index_id, field)
    return files.derived(f"{column} known", lambda: as_mask(files.column(column).is_valid()))


def as_mask(values: pa.Array) -> Mask:
    """Arrow's truth values as numpy's; NULL is False."""
    if values.null_count:
        values = pc.fill_null(values, False)
    mask: Mask = values.to_numpy(zero_copy_only=False)
    return mask


def compare(keys: valueorder.Keys, operator: predicates.Operator, key: int | bytes) -> Mask:
    """For each key, whether `key op literal` holds."""
    if isinstance(keys, np.ndarray):
        return _NUMPY[operator](keys, np.int64(cast(int, key)))
    return as_mask(_ARROW[operator](keys, pa.scalar(key, pa.large_binary())))


def holds(leaf: predicates.Leaf, keys: valueorder.Keys, data_type: str) -> Mask | None:
    """For each value (its key), whether a leaf is TRUE; None for a leaf that concerns no values."""
    match leaf:
        case predicates.Comparison(_, operator, value):
            return compare(keys, operator, valueorder.key_of(value, data_type))
        case predicates.In(_, values, is_negated):
            found = _is_in(keys, values, data_type)
            return ~found if is_negated else found
        case predicates.Residue() if isinstance(keys, np.ndarray):
            return _is_residue(keys, leaf)
        case predicates.StartsWith(_, prefix, is_negated) if valueorder.is_text(data_type):
            found = as_mask(pc.starts_with(keys, pattern=prefix))
            return ~found if is_negated else found
        case predicates.EndsWith(_, suffix) if valueorder.is_text(data_type):
            return as_mask(pc.ends_with(keys, pattern=suffix))
        case predicates.Contains(_, piece) if valueorder.is_text(data_type):
            return as_mask(pc.match_substring(keys, pattern=piece))
        case _:
            return None


def successor(prefix: bytes) -> bytes | None:
    """The least text greater than every text with a prefix; None if none exists."""
    shortened = prefix.rstrip(b"\xff")
    return shortened[:-1] + bytes([shortened[-1] + 1]) if shortened else None


def past(keys: valueorder.Int64s, leaf: predicates.Residue) -> valueorder.Int64s:
    """Distance of each key from the last start of the leaf's residues."""
    distance: valueorder.Int64s = np.mod(np.mod(keys, leaf.modulus) - leaf.first, leaf.modulus)
    return distance


def _is_residue(keys: valueorder.Int64s, leaf: predicates.Residue) -> Mask:
    found = past(keys, leaf) < leaf.count
    if leaf.low is not None:
        found &= keys >= leaf.low
    if leaf.high is not None:
        found &= keys <= leaf.high
    return found


def _is_in(keys: valueorder.Keys, values: Sequence[Value], data_type: str) -> Mask:
    literals = valueorder.sorted_keys(values, data_type)
    if isinstance(keys, np.ndarray):
        return np.isin(keys, literals)
    return as_mask(pc.is_in(keys, value_set=pa.array(literals, pa.large_binary())))


def without_values(column: FooterColumn) -> Mask:
    """Files in which the term is proved NULL in every row."""
    return as_mask(pc.equal(column.values, 0))


def with_one_value(column: FooterColumn) -> Mask:
    """Files in which the term has values, all proved equal in Spark's order."""
    is_same = pc.equal(column.minimum, column.maximum)
    if pa.types.is_floating(column.minimum.type):
        is_same = pc.or_(is_same, pc.and_(pc.is_nan(column.minimum), pc.is_nan(column.maximum)))
    return as_mask(is_same) & as_mask(pc.greater(column.values, 0))


def only_where(files: Mask, values: pa.Array) -> pa.Array:
    """Values of some files, and null for the others."""
    if files.all():
        return values
    return values.take(pa.array(np.arange(len(files)), mask=~files))


def same_in(
    files: Mask, row: Mapping[str, object], fields: Mapping[str, pa.DataType]
) -> dict[str, pa.Array]:
    """Fields that are the same in some files, and null for the others."""
    places = pa.array(np.zeros(len(files), dtype=np.int64), mask=~files)
    return {name: pa.array([row[name]], kind).take(places) for name, kind in fields.items()}


def short_lists(values: pa.Array, with_value: Mask, known: Mask) -> pa.Array:
    """Lists of one value in the files `with_value`, of none in other `known` ones; else null."""
    offsets = np.concatenate([[0], np.cumsum(with_value, dtype=np.int32)]).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)
    return only_where(known, lists)
