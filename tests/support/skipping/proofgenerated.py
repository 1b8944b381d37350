"""Everything that is drawn from one seed: a table, index sets, conditions, and what these need."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession
from support.skipping.onequalsoff import (
    IndexHome,
    IndexSet,
    Needs,
    Verdict,
    counterexample,
    judge,
    needed_files,
    on_and_off,
)
from support.skipping.proofconditions import Condition, conditions
from support.skipping.proofedges import edge_conditions
from support.skipping.prooffacts import facts_of
from support.skipping.proofhomes import held_sets
from support.skipping.proofranges import FORMS, range_conditions
from support.skipping.proofsets import index_sets, indexed_expressions
from support.skipping.prooftables import ProofTable, make_table

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
        """Index sets; always the same."""
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
