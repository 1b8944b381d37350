"""Files of values, conditions, and how a plain three-valued evaluator judges them.

The evaluator is the oracle of the property tests: it shares nothing with the code under test but
the classes of the conditions.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache

import pyarrow as pa
from hypothesis import strategies as st

from snaploom.skipping.core.definition import (
    IndexDefinition,
    ReaderFingerprint,
    SkippingDefinition,
    Target,
    Term,
    Value,
    arrow_type,
    column_term,
)
from snaploom.skipping.core.filetable import FileTable, field_column, nulls_column, values_column
from snaploom.skipping.core.hashes import xxhash64
from snaploom.skipping.core.predicates import (
    And,
    Comparison,
    Constant,
    Contains,
    EndsWith,
    In,
    IsNotNull,
    IsNull,
    Not,
    Operator,
    Or,
    Predicate,
    Residue,
    StartsWith,
    Unknown,
)
from snaploom.skipping.indexes.base import Feed, evaluate, index_type

TEXTS = ("string", "binary")
NUMBERS = ("int", "bigint", "float", "double", "decimal(10,2)", "decimal(38,4)")
TYPES = (
    *("boolean", "tinyint", "smallint", "date", "timestamp", "timestamp_ntz"),
    *NUMBERS,
    *TEXTS,
)

_FLOATS = [math.nan, -0.0, 0.0, math.inf, -math.inf, 1.5, -1.5, 1e-30, 3.0]
_STRINGS = ["", "a", "ab", "abc", "abcd", "Grüße", "🎉", "🎉x", "\uffff", "\ue000", "prefix-a"]
_STRINGS += ["prefix-aa", "prefix-ab", "prefix-b", "\x00", "a\x00"]
_BINARIES = [b"", b"\x00", b"\x00\x00", b"\x7f", b"\x80", b"\xff", b"\xff\xff", b"\xff" * 9, b"ab"]

_EDGES: dict[str, list[Value]] = {
    "boolean": [False, True],
    "tinyint": [-128, -1, 0, 1, 127],
    "smallint": [-(2**15), 0, 1, 2**15 - 1],
    "int": [-(2**31), -1, 0, 1, 2, 2**31 - 1],
    "bigint": [-(2**63), -1, 0, 1, 2, 2**63 - 1],
    "float": [*_FLOATS[:7], 3.0],
    "double": list(_FLOATS),
    "decimal(10,2)": [Decimal("-99999999.99"), Decimal("0.00"), Decimal("0.01"), Decimal("1.50")],
    "decimal(38,4)": [Decimal(10) ** 33, Decimal("-1E+33"), Decimal("0.0001"), Decimal("-0.0001")],
    "date": [-719162, -141428, -1, 0, 1, 19000],
    "timestamp": [-62135596800000000, -1, 0, 1, 1_700_000_000_000_000],
    "timestamp_ntz": [-62135596800000000, -1, 0, 1, 1_700_000_000_000_000],
    "string": [text.encode() for text in _STRINGS],
    "binary": list(_BINARIES),
}


@dataclass(frozen=True)
class Row:
    values: tuple[Value | None, ...]
    """Value of each term, in the order of the case's terms."""
    hidden: bool | None
    """What the condition that nobody understands is in this row."""


@dataclass(frozen=True)
class Case:
    """Indexes, the files that they are built from, and a condition."""

    terms: tuple[Term, ...]
    indexes: tuple[IndexDefinition, ...]
    files: tuple[tuple[Row, ...], ...]
    predicate: Predicate


def is_true(case: Case, row: Row) -> bool:
    """Whether the condition is TRUE for a row."""
    return (
        _truth(case.predicate, dict(zip(case.terms, row.values, strict=True)), row.hidden) is True
    )


def loses_rows(case: Case) -> bool:
    """Whether skipping would lose a row: the one thing that must never be."""
    keep = kept(case)
    return any(
        not keep[at] and any(is_true(case, row) for row in rows)
        for at, rows in enumerate(case.files)
    )


def kept(case: Case) -> list[bool]:
    definition = skipping_definition(*case.indexes)
    files = file_table(case.indexes, case.terms, case.files)
    evaluation = evaluate(case.predicate, definition, files)
    failures = [why for clause in evaluation.clauses for why in clause.unserved if "failed" in why]
    if failures:
        raise AssertionError(f"an index failed, which the evaluation forgives: {failures}")
    return [bool(answer) for answer in evaluation.keep]


def skipping_definition(*indexes: IndexDefinition) -> SkippingDefinition:
    return SkippingDefinition(
        Target("file:/data/t", format="parquet"), ReaderFingerprint("parquet"), indexes
    )


def file_table(
    indexes: Sequence[IndexDefinition], terms: Sequence[Term], files: Sequence[Sequence[Row]]
) -> FileTable:
    """What the indexes keep about files, each built by the type's own builder."""
    names = [f"file:/data/t/{at}" for at in range(len(files))]
    columns: dict[str, pa.Array] = {
        "path": pa.array(names, pa.large_string()),
        "length": pa.array([100] * len(files), pa.int64()),
        "modified": pa.array([1000] * len(files), pa.int64()),
        "etag": pa.nulls(len(files), pa.large_string()),
    }
    for index in indexes:
        positions = [terms.index(term) for term in index.terms]
        contents = [[[row.values[at] for row in rows] for at in positions] for rows in files]
        columns.update(index_columns(index, contents))
    return FileTable.of(pa.table(columns))


def index_columns(
    index: IndexDefinition, files: Sequence[Sequence[Sequence[Value | None]]]
) -> dict[str, pa.Array]:
    """Columns of one index over files, for each of which there are values of each term."""
    columns: dict[str, pa.Array] = {}
    for at in range(len(index.terms)):
        nulls = [sum(value is None for value in content[at]) for content in files]
        values = [len(content[at]) - count for content, count in zip(files, nulls, strict=True)]
        columns[values_column(index.index_id, at)] = pa.array(values, pa.int64())
        columns[nulls_column(index.index_id, at)] = pa.array(nulls, pa.int64())
    rows = [built(index, content) for content in files]
    for name, kept_as in index_type(index.type).fields(index).items():
        column = field_column(index.index_id, name)
        columns[column] = pa.array([row[name] for row in rows], kept_as)
    return columns


def built(index: IndexDefinition, content: Sequence[Sequence[Value | None]]) -> dict[str, object]:
    """The row that the type's builder gives for one file, in batches of two rows."""
    builder = index_type(index.type).builder(index)
    for start in range(0, len(content[0]), 2):
        builder.add(fed(index, [values[start : start + 2] for values in content]))
    return dict(builder.finish())


def fed(index: IndexDefinition, content: Sequence[Sequence[Value | None]]) -> list[pa.Array]:
    """What a builder is fed with: values, or their hashes."""
    if index_type(index.type).feed(index) is Feed.VALUES:
        pairs = zip(content, index.terms, strict=True)
        return [pa.array(values, arrow_type(term.data_type)) for values, term in pairs]
    data_type = index.term.data_type
    hashes = [None if value is None else xxhash64([value], data_type)[0] for value in content[0]]
    return [pa.array(hashes, pa.int64())]


@cache
def values(data_type: str) -> st.SearchStrategy[Value]:
    """Values of a Spark type, edges of its range and near ones often."""
    edges = st.sampled_from(_EDGES[data_type])
    near: dict[str, st.SearchStrategy[Value]] = {
        "float": st.floats(width=32),
        "double": st.floats(),
        "decimal(10,2)": st.integers(-500, 500).map(lambda number: Decimal(number).scaleb(-2)),
        "decimal(38,4)": st.integers(-500, 500).map(lambda number: Decimal(number).scaleb(-4)),
        "string": st.text("ab-🎉é", max_size=12).map(str.encode),
        "binary": st.binary(max_size=10),
        "boolean": st.booleans(),
    }
    return edges | edges | near.get(data_type, st.integers(-20, 20))


def cases(
    type_name: str, data_types: Sequence[str], parameters: tuple[tuple[str, str], ...] = ()
) -> st.SearchStrategy[Case]:
    """Cases with one index of a type; two terms, of which the second may have no index."""
    return st.one_of([_cases_of(type_name, data_type, parameters) for data_type in data_types])


@cache
def _cases_of(
    type_name: str, data_type: str, parameters: tuple[tuple[str, str], ...]
) -> st.SearchStrategy[Case]:
    terms = (column_term(("a",), data_type), column_term(("b",), data_type))
    covered = terms if type_name == "GEO_BOX" else terms[:1]
    indexes = st.just((IndexDefinition("i1", type_name, covered, parameters),))
    return st.builds(Case, st.just(terms), indexes, _files(data_type), predicates(terms))


@cache
def _files(data_type: str) -> st.SearchStrategy[tuple[tuple[Row, ...], ...]]:
    cell = st.none() | values(data_type) | values(data_type)
    row = st.builds(Row, st.tuples(cell, cell), st.sampled_from([True, False, None]))
    several = st.lists(row, max_size=5).map(tuple)
    # Files of one value are those about which indexes can prove most.
    alike = st.tuples(row, st.integers(1, 3)).map(lambda drawn: (drawn[0],) * drawn[1])
    return st.lists(several | alike, min_size=1, max_size=4).map(tuple)


def predicates(terms: tuple[Term, ...]) -> st.SearchStrategy[Predicate]:
    """Conditions of every shape over terms of one type."""
    term, literals = st.sampled_from(terms), values(terms[0].data_type)
    several = st.lists(literals, max_size=14).map(tuple)
    comparison = st.builds(Comparison, term, st.sampled_from(Operator), literals)
    leaves: list[st.SearchStrategy[Predicate]] = [
        comparison,
        comparison,
        st.builds(In, term, several, st.booleans()),
        st.builds(IsNull, term) | st.builds(IsNotNull, term),
        st.builds(Constant, st.booleans()) | st.just(Unknown("f(a)")),
    ]
    if terms[0].data_type in TEXTS:
        cut = st.tuples(literals, st.integers(0, 3), st.integers(0, 9))
        piece = cut.map(lambda drawn: bytes(drawn[0])[drawn[1] : drawn[1] + drawn[2]])
        leaves += [
            st.builds(StartsWith, term, piece, st.booleans()),
            st.builds(Contains, term, piece) | st.builds(EndsWith, term, piece),
        ]
    if _decimals(terms[0].data_type) is not None:
        leaves.append(residues(term))
    leaf = st.one_of(leaves)
    negated = leaf | st.builds(Not, leaf)
    pair = st.lists(negated, min_size=1, max_size=3).map(tuple)
    joined = st.builds(And, pair) | st.builds(Or, pair)
    mixed = joined | st.builds(Not, joined) | negated
    both = st.tuples(mixed, mixed)
    return leaf | joined | mixed | st.builds(And, both) | st.builds(Not, st.builds(Or, both))


def residues(term: st.SearchStrategy[Term]) -> st.SearchStrategy[Predicate]:
    """Remainders of all sizes, with bounds at times."""

    def of_modulus(modulus: int) -> st.SearchStrategy[Predicate]:
        bound = st.none() | st.none() | st.integers(-150, 150) | st.integers(-(2**62), 2**62)
        first, count = st.integers(0, modulus - 1), st.integers(1, modulus - 1)
        return st.builds(Residue, term, st.just(modulus), first, count, bound, bound)

    return st.sampled_from([2, 3, 5, 7, 100, 1000, 2**31, 2**62]).flatmap(of_modulus)


def _decimals(data_type: str) -> int | None:
    """Digits behind the point of types that count; None for others."""
    if data_type.startswith("decimal"):
        return int(data_type.rstrip(")").split(",")[1])
    counted = ("tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz")
    return 0 if data_type in counted else None


def _truth(predicate: Predicate, row: dict[Term, Value | None], hidden: bool | None) -> bool | None:
    match predicate:
        case And(parts):
            return _all([_truth(part, row, hidden) for part in parts])
        case Or(parts):
            return _negated(_all([_negated(_truth(part, row, hidden)) for part in parts]))
        case Not(part):
            return _negated(_truth(part, row, hidden))
        case Constant(is_true):
            # One that is not TRUE stands for FALSE and for NULL.
            return True if is_true else (False if hidden else None)
        case Unknown():
            return hidden
        case IsNull(term):
            return row[term] is None
        case IsNotNull(term):
            return row[term] is not None
        case In(_, values, is_negated) if not values:
            return is_negated
        case _:
            value = row[predicate.term]
            return None if value is None else _leaf_truth(predicate, value)


def _leaf_truth(leaf: Predicate, value: Value) -> bool:
    match leaf:
        case Comparison(_, operator, literal):
            left, right = _place(value), _place(literal)
            return {
                Operator.EQ: left == right,
                Operator.NE: left != right,
                Operator.LT: left < right,
                Operator.LE: left <= right,
                Operator.GT: left > right,
                Operator.GE: left >= right,
            }[operator]
        case In(_, literals, is_negated):
            return any(_place(value) == _place(each) for each in literals) != is_negated
        case Residue(term, modulus, first, count, low, high):
            whole = int(Fraction(value) * 10 ** _decimals(term.data_type))
            is_between = (low is None or low <= whole) and (high is None or whole <= high)
            return is_between and (whole - first) % modulus < count
        case StartsWith(_, prefix, is_negated):
            return bytes(value).startswith(prefix) != is_negated
        case Contains(_, piece):
            return piece in bytes(value)
        case EndsWith(_, suffix):
            return bytes(value).endswith(suffix)
    raise TypeError(f"no leaf: {leaf}")


def _place(value: Value) -> tuple[bool, Value]:
    """The rank of a value in Spark's order: NaN after everything, and equal to itself."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return (True, 0.0) if is_nan else (False, value)


def _all(truths: Sequence[bool | None]) -> bool | None:
    if False in truths:
        return False
    return None if None in truths else True


def _negated(truth: bool | None) -> bool | None:
    return None if truth is None else not truth
