"""Everything that is drawn from one seed: a table, index sets, conditions, and what these need."""

import math
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import partial
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession
from support.skipping.onequalsoff import (
    IndexHome,
    IndexOf,
    IndexSet,
    Needs,
    Verdict,
    counterexample,
    judge,
    needed_files,
    on_and_off,
)
from support.skipping.proofconditions import (
    FORMS,
    Condition,
    conditions,
    literal,
    quoted,
    range_conditions,
)
from support.skipping.proofmetadata import Facts, Plain, facts_of, held_sets
from support.skipping.prooftables import ProofTable, make_table

from snaploom.errors import SnaploomError
from snaploom.skipping.core.definition import IndexDefinition, column_term
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


_WHOLE = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
"""Integers, and their bits without the sign."""
_MOMENTS = {
    "date": "date_from_unix_date({})",
    "timestamp": "timestamp_micros({})",
    "timestamp_ntz": "CAST(timestamp_micros({}) AS timestamp_ntz)",
}
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31."""
_DAY = 86_400_000_000
_EXACTLY = Context(prec=76)


def edge_conditions(
    rng: random.Random, facts: Facts, texts: Sequence[str], columns: Sequence[str], count: int
) -> list[Condition]:
    """So many different conditions, or fewer where the files hold too little for that.

    Args:
        rng: of all that is drawn.
        facts: what the files hold.
        texts: what is asked about: columns and expressions of `facts`.
        columns: the column that each one is made of.
        count: of conditions.
    """
    found: dict[str, Condition] = {}
    for _ in range(4 * count):
        if len(found) == count:
            break
        place = rng.randrange(len(texts))
        text = _edge(rng, facts, texts[place])
        if text:
            found[text] = Condition(
                text, frozenset({columns[place]}), about=frozenset({texts[place]})
            )
    return list(found.values())


def _edge(rng: random.Random, facts: Facts, text: str) -> str:
    data_type = facts.types[text]
    holding = [file.values[text] for file in facts.files if file.values[text]]
    if not holding:
        return ""

    def one() -> str:
        values = rng.choice(holding)
        value = rng.choice([values[0], values[-1], rng.choice(values)])
        return plain_literal(near(rng, value, data_type), data_type)

    def several() -> str:
        return ", ".join(one() for _ in range(rng.randint(1, 12)))

    operator = rng.choice(["=", "=", "<=>", "<>", "<", "<=", ">", ">="])
    forms: list[Callable[[], str]] = [
        lambda: f"{text} {operator} {one()}",
        lambda: f"{text} {operator} {one()}",
        lambda: f"{text} {operator} {one()}",
        lambda: f"{one()} {operator} {text}",
        lambda: f"{text} IN ({several()})",
        lambda: f"{text} NOT IN ({several()})",
        lambda: f"{text} BETWEEN {one()} AND {one()}",
        lambda: f"NOT ({text} {operator} {one()})",
    ]
    if data_type == "string":
        forms.append(lambda: f"startswith({text}, {one()})")
    return rng.choice(forms)()


def near(rng: random.Random, value: Plain, data_type: str) -> Plain:
    step = rng.choice([0, 0, -1, 1])
    if step == 0:
        return value
    match value:
        case bool():
            return not value
        case int() if data_type in _MOMENTS:
            unit = 1 if data_type == "date" else _DAY
            return min(max(value + step, _FIRST_DAY * unit), (_LAST_DAY + 1) * unit - 1)
        case int():
            limit = 2 ** _WHOLE[data_type]
            return min(max(value + step, -limit), limit - 1)
        case float():
            to = math.copysign(math.inf, step)
            if data_type == "float":
                return float(np.nextafter(np.float32(value), np.float32(to)))
            return math.nextafter(value, to)
        case Decimal():
            return _next_decimal(value, step, data_type)
        case bytes() if data_type == "string":
            text = value.decode()
            return (text + "\x01" if step > 0 else text[:-1]).encode()
        case bytes():
            return value + b"\0" if step > 0 else value[:-1]
    raise TypeError(f"no neighbour: {value!r}")


def plain_literal(value: Plain, data_type: str) -> str:
    if data_type in _MOMENTS:
        return _MOMENTS[data_type].format(value)
    if isinstance(value, bytes) and data_type == "string":
        return quoted(value.decode())
    return literal(value, data_type)


def _next_decimal(value: Decimal, step: int, data_type: str) -> Decimal:
    precision, scale = map(int, data_type.removeprefix("decimal(").removesuffix(")").split(","))
    whole = int(value.scaleb(scale, _EXACTLY)) + step
    limit = 10**precision - 1
    return Decimal(min(max(whole, -limit), limit)).scaleb(-scale, _EXACTLY)


GENERAL, EDGES, EXPRESSIONS, RANGES = 44, 26, 20, 20
"""Conditions of each kind that are drawn for a table."""
MOST = 48
"""Conditions that one index set is asked."""
COLLECTED = 2
"""Conditions of each index set whose rows are compared whole."""


@dataclass(frozen=True)
class Generated:
    """A table with everything to prove about it; the same for every home."""

    spark: SparkSession
    table: ProofTable
    seed: int
    conditions: Sequence[Condition]
    """Those that Spark does not refuse."""
    needs: Needs

    @property
    def sets(self) -> list[IndexSet]:
        return index_sets(random.Random(f"{self.table.name} sets"), self.table)

    def verdicts(self, home: IndexHome) -> dict[str, Verdict]:
        """Results of each index set in a home.

        Raises:
            AssertionError: a row is lost; with the smallest case that was found.
        """
        return {
            indexes.label: self._verdict(home, indexes)
            for indexes in held_sets(home, self.table, self.sets)
        }

    def _verdict(self, home: IndexHome, indexes: IndexSet) -> Verdict:
        rng = random.Random(f"{self.table.name} {indexes.label}")
        location = home.build(self.spark, self.table, indexes)
        mine = [each for each in self.conditions if each.columns & indexes.columns]
        mine = rng.sample(mine, min(MOST, len(mine)))
        # Those that query the indexes show how much is skipped.
        verdict = judge(self.spark, self.table, location, mine, self.needs, indexes.is_asked_by)
        for condition, _ in verdict.lost[:1]:
            raise AssertionError(counterexample(self.spark, home, self.table, indexes, condition))
        for condition in mine[:COLLECTED]:
            query = partial(self.table.frame(self.spark).where, condition.text)
            on, off = on_and_off(self.spark, location, query)
            if on != off:
                raise AssertionError(f"{self.table.name}, {indexes}: {condition.text}")
        return verdict


def generate(spark: SparkSession, folder: Path, layout: str, seed: int) -> Generated:
    """Everything of one seed.

    Args:
        spark: writes and reads.
        folder: a new one.
        layout: one of `LAYOUTS`.
        seed: of all that is drawn.
    """
    table = make_table(spark, folder, layout, seed)
    expressions = indexed_expressions(table.columns)
    facts = facts_of(spark, table, list(expressions))
    rng = random.Random(f"{layout} {seed} conditions")
    names = list(table.columns)
    drawn = [
        *conditions(rng, table.columns, GENERAL),
        *edge_conditions(rng, facts, names, names, EDGES),
        *edge_conditions(rng, facts, list(expressions), list(expressions.values()), EXPRESSIONS),
    ]
    ranged = _ranged(rng, table, RANGES)
    needs = needed_files(spark, table, [*drawn, *ranged])
    usable = [each for each in drawn if each.text in needs]
    if len(usable) < 0.9 * len(drawn):
        raise AssertionError(f"Spark refuses too many of the conditions: {len(usable)}")
    return Generated(
        spark, table, seed, [*usable, *(each for each in ranged if each.text in needs)], needs
    )


def _ranged(rng: random.Random, table: ProofTable, count: int) -> list[Condition]:
    """Conditions on expressions whose ranges are those of a column; many fail by overflow."""
    names = [name for name, data_type in table.columns.items() if data_type in FORMS]
    chosen = [rng.choice(names) for _ in range(count)]
    return [
        Condition(
            rng.choice(range_conditions(rng, name, table.columns[name], 1)), frozenset({name})
        )
        for name in chosen
    ]
