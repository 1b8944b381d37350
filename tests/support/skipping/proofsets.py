"""Index sets for the tables of `prooftables`, made from a seed."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

from support.skipping.onequalsoff import IndexOf, IndexSet
from support.skipping.prooftables import ProofTable

from snaploom.errors import SnaploomError
from snaploom.skipping.core.definition import IndexDefinition
from snaploom.skipping.core.terms import column_term
from snaploom.skipping.indexes.base import index_type, registered_types

_TEXTS = ("s", "x", "st.s")
_OWN = ("MIN_MAX", "VALUE_SET", "BLOOM_FILTER", "PREFIX", "TOKENS", "GEO_BOX", "PARTITION")
"""Types that are drawn with parameters."""
_EXPRESSIONS = {
    "s": [
        *("lower(s)", "length(s)", "try_cast(s AS int)", "substring(s, 1, 2)", "upper(s)"),
        "regexp_extract(s, '([a-z]+)-?([a-z]*)', 2)",
    ],
    "ts": ["date(ts)", "year(ts)", "hour(ts)", "date_trunc('DAY', ts)"],
    "nt": ["CAST(nt AS date)", "year(nt)"],
    "dt": ["year(dt)", "trunc(dt, 'MM')", "month(dt)"],
    "i": ["i % 3", "CAST(i AS double)", "CAST(i AS string)", "i > l", "i <= sm OR sm < 0"],
    "d": ["isnan(d)", "-d", "nanvl(d, 1)"],
    "m": ["CAST(m AS double)"],
}


def indexed_expressions(columns: Collection[str]) -> dict[str, str]:
    """Every expression about which an index set may have an index, with its column."""
    return {text: name for name in columns for text in _EXPRESSIONS.get(name, ())}


def index_sets(rng: random.Random, table: ProofTable) -> list[IndexSet]:
    """One set for each type, whose share of dropped files then is its own; and mixed ones."""
    names = tuple(table.columns)
    texts = tuple(name for name in _TEXTS if name in names)
    sets = [
        IndexSet("MIN_MAX", _each("MIN_MAX", names)),
        IndexSet("VALUE_SET", _each("VALUE_SET", names, limit=rng.choice([2, 3, 5]))),
        _blooms(rng, names),
        IndexSet("EXPRESSION", _expressions(rng, names)),
        rng.choice([_prefixes, _tokens])(rng, texts),
    ]
    if table.partition_columns:
        sets.append(IndexSet("PARTITION", _each("PARTITION", table.partition_columns)))
        where = rng.choice(["q = 1", "p IS NOT NULL AND p > 'b'", "p IS NULL OR q = 0"])
        sets.append(IndexSet("WHERE", _each("MIN_MAX", names), where))
    else:
        sets.append(IndexSet("GEO_BOX", (IndexOf("GEO_BOX", ("d", "f")),)))
        where = "_metadata.file_path LIKE '%01%' OR _metadata.file_path LIKE '%04%'"
        sets.append(IndexSet("WHERE", _each("VALUE_SET", names), where))
    sets.extend(_others(table))
    every = [index for each in sets if each.label != "WHERE" for index in each.indexes]
    sets.append(IndexSet("MIXED", tuple(rng.sample(every, min(len(every), 14)))))
    return sets


def _others(table: ProofTable) -> list[IndexSet]:
    """A set for each further type that is registered, about the columns that it accepts."""
    sets = [
        IndexSet(name, _each(name, [at for at in table.columns if _accepts(name, table, at)]))
        for name in registered_types()
        if name not in _OWN
    ]
    return [each for each in sets if each.indexes]


def _accepts(type_name: str, table: ProofTable, column: str) -> bool:
    term = column_term(tuple(column.split(".")), table.columns[column])
    try:
        index_type(type_name).check(IndexDefinition("i", type_name, (term,)))
    except SnaploomError:
        return False
    return True


def _each(type_name: str, names: Sequence[str], **parameters: int | float) -> tuple[IndexOf, ...]:
    return tuple(IndexOf(type_name, (name,), "", tuple(parameters.items())) for name in names)


def _blooms(rng: random.Random, names: Sequence[str]) -> IndexSet:
    parameters = rng.choice([{}, {"fpp": 0.3}, {"ndv": 2}])
    return IndexSet("BLOOM_FILTER", _each("BLOOM_FILTER", names, **parameters))


def _prefixes(rng: random.Random, texts: Sequence[str]) -> IndexSet:
    return IndexSet("PREFIX", _each("PREFIX", texts, length=rng.choice([1, 2, 8]), limit=4))


def _tokens(rng: random.Random, texts: Sequence[str]) -> IndexSet:
    return IndexSet("TOKENS", _each("TOKENS", texts, n=rng.choice([2, 3])))


def _expressions(rng: random.Random, names: Sequence[str]) -> tuple[IndexOf, ...]:
    kinds = ["MIN_MAX", "MIN_MAX", "VALUE_SET", "BLOOM_FILTER"]
    return tuple(
        IndexOf(rng.choice(kinds), (name,), text)
        for text, name in indexed_expressions(names).items()
    )
