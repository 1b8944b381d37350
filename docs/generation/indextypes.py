"""What each index type keeps, takes and serves: asked of the types themselves."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from generation.markdown import table
from generation.sourcetext import meaning
from snaploom.skipping.core.definition import IndexDefinition, Term, arrow_type, column_term
from snaploom.skipping.core.filetable import FileTable, field_column, values_column
from snaploom.skipping.core.hashes import xxhash64
from snaploom.skipping.core.predicates import (
    Comparison,
    Contains,
    EndsWith,
    In,
    Leaf,
    Operator,
    StartsWith,
)
from snaploom.skipping.indexes import bloomfilter, valueset
from snaploom.skipping.indexes.base import Feed, index_type, registered_types

ORDER = ("MIN_MAX", "VALUE_SET", "BLOOM_FILTER", "PARTITION", "PREFIX", "TOKENS", "GEO_BOX")
"""The order in which people meet them."""

_TEXT = b"abcdef"


@dataclass(frozen=True)
class Parameter:
    """A parameter of a type."""

    type: str
    name: str
    default: str
    bounds: str
    meaning: str


PARAMETERS = (
    Parameter("VALUE_SET", "limit", f"{valueset.DEFAULT_LIMIT}", f"1 to {valueset.MOST:,}",
              "Most distinct values of a file that are kept; with more, nothing is known of it."),
    Parameter("BLOOM_FILTER", "fpp", "0.01", "between 0 and 1, both excluded",
              "Share of wrong yeses."),
    Parameter("BLOOM_FILTER", "ndv", "what each file has", f"1 to {bloomfilter.MOST_CAPACITY:,}",
              "Distinct values for which every filter is sized; a file with more is unknown. "
              f"Without it, filters fit their files, up to {bloomfilter.CAPACITY:,} values."),
    Parameter("BLOOM_FILTER", "items", bloomfilter.HASHES,
              f"`{bloomfilter.HASHES}` or `{bloomfilter.VALUES}`",
              "What is put into filters: Spark's `xxhash64`, as Flint does, or values, as Xskipper "
              "does (integers, string and binary only)."),
    Parameter("BLOOM_FILTER", "num_candidates", "", "any",
              "Flint's; accepted, and changes nothing, since filters fit their files anyway."),
    Parameter("PREFIX", "length", f"{valueset.DEFAULT_LENGTH}", "1 to 256", "Bytes of a prefix."),
    Parameter("PREFIX", "limit", f"{valueset.MOST_PREFIXES}", "1 to 100,000",
              "Most distinct prefixes of a file."),
    Parameter("TOKENS", "n", f"{bloomfilter.DEFAULT_SIZE}", f"2 to {bloomfilter.LARGEST_SIZE}",
              "Bytes of an n-gram; shorter pieces of text prove nothing."),
    Parameter("TOKENS", "fpp", "0.01", "between 0 and 1, both excluded", "Share of wrong yeses."),
)  # fmt: skip

Shape = Callable[[Term], Leaf]
_ON_TEXT: dict[str, Shape] = {
    "`=`": lambda term: Comparison(term, Operator.EQ, _TEXT),
    "`<>`": lambda term: Comparison(term, Operator.NE, _TEXT),
    "`< <= > >=`": lambda term: Comparison(term, Operator.LT, _TEXT),
    "`IN`": lambda term: In(term, (_TEXT,)),
    "`NOT IN`": lambda term: In(term, (_TEXT,), is_negated=True),
    "`LIKE 'p%'`": lambda term: StartsWith(term, _TEXT),
    "`NOT LIKE 'p%'`": lambda term: StartsWith(term, _TEXT, is_negated=True),
    "`LIKE '%p'`": lambda term: EndsWith(term, _TEXT),
    "`LIKE '%p%'`": lambda term: Contains(term, _TEXT),
}


def types_table() -> str:
    """What each type keeps about a file."""
    rows = [[f"`{name}`", _kept(name), ", ".join(_parameters(name)) or "none"] for name in _names()]
    return table(["type", "keeps", "parameters"], rows)


def parameters_table() -> str:
    """The parameters of all types."""
    rows = [
        [f"`{each.type}`", f"`{each.name}`", each.default, each.bounds, each.meaning]
        for each in PARAMETERS
    ]
    return table(["type", "parameter", "default", "bounds", "meaning"], rows)


def served_table() -> str:
    """Which conditions each type can answer: asked of the type, over a file of one text."""
    columns = ["type", *_ON_TEXT, "`IS [NOT] NULL`"]
    return table(columns, [[f"`{name}`", *_answers(name), "yes"] for name in _names()])


def _names() -> list[str]:
    return sorted(registered_types(), key=lambda name: (*ORDER, name).index(name))


def _kept(name: str) -> str:
    module = sys.modules[type(index_type(name)).__module__]
    first = (inspect.getdoc(module) or "").split("\n\n")[0].partition(": ")[2]
    text = meaning(first)
    return text[0].upper() + text[1:]


def _parameters(name: str) -> list[str]:
    return [f"`{each.name}`" for each in PARAMETERS if each.type == name]


def _answers(name: str) -> list[str]:
    if name == "GEO_BOX":
        number = column_term(("lat",), "double"), column_term(("lon",), "double")
        return [_answer(name, number, shape) for shape in _ON_TEXT.values()]
    text = (column_term(("c",), "string"),)
    return [_answer(name, text, shape) for shape in _ON_TEXT.values()]


def _answer(name: str, terms: Sequence[Term], shape: Shape) -> str:
    definition = IndexDefinition("i1", name, tuple(terms))
    leaf = shape(terms[0])
    if terms[0].data_type == "double":
        if not isinstance(leaf, Comparison | In):
            return "no"
        leaf = (
            In(terms[0], (1.0,), leaf.is_negated)
            if isinstance(leaf, In)
            else Comparison(terms[0], leaf.operator, 1.0)
        )
    mask = index_type(name).may_match(definition, _one_file(definition), leaf)
    return "no" if mask is None or _is_always_kept(name, leaf) else "yes"


def _is_always_kept(name: str, leaf: Leaf) -> bool:
    """Whether an answer is given that no kept row could make a proof of absence."""
    terms = (column_term(("c",), "string"),)
    if leaf.term != terms[0]:
        return False
    definition = IndexDefinition("i1", name, terms)
    kind = index_type(name)
    files = [_one_file(definition, text) for text in (_TEXT, b"zzz", b"aaa", b"abcdefgh")]
    answers = [kind.may_match(definition, each, leaf) for each in files]
    return all(answer is None or bool(np.all(answer)) for answer in answers)


def _one_file(definition: IndexDefinition, text: bytes = _TEXT) -> FileTable:
    """What the type keeps about a file of one value, as a table of one row."""
    kind = index_type(definition.type)
    builder = kind.builder(definition)
    if kind.feed(definition) is Feed.HASHES:
        given = [pa.array(xxhash64([text], "string"))]
    else:
        given = [
            pa.array([text if each.data_type == "string" else 1.0], arrow_type(each.data_type))
            for each in definition.terms
        ]
    builder.add(given)
    row = builder.finish()
    columns = {values_column("i1"): pa.array([1], pa.int64())}
    for name, kept_as in kind.fields(definition).items():
        columns[field_column("i1", name)] = pa.array([row[name]], kept_as)
    return FileTable.of(pa.table(columns))
