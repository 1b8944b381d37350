"""How many of the files without a row of the answer bounds leave out: `make bench-skipping`.

Each class of condition is drawn many times, over files that hold neighbouring whole numbers, days
or X
"""

import json
import random
import sys
import tempfile
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from figures import Figure, publish
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from support.skipping.proofconditions import FORMS, OPERATORS

from snaploom.models.run import DriverSettings, RunSettings, SparkSettings
from snaploom.run.session.spark import build_session
from snaploom.skipping.core.definition import (
    IndexDefinition,
    ReaderFingerprint,
    SkippingDefinition,
    Target,
    arrow_type,
    column_term,
)
from snaploom.skipping.core.filetable import FileTable
from snaploom.skipping.core.predicates import Predicate
from snaploom.skipping.indexes.base import evaluate
from snaploom.skipping.spark.optimizer.translation import catalyst
from snaploom.skipping.spark.relations.fingerprint import SETTINGS, columns
from snaploom.skipping.spark.relations.hadoop import JavaRule

Mask = npt.NDArray[np.bool_]

FILES = 200
WIDEST = 40
"""Values between the bounds of a file, at most."""
EACH = 10
"""Conditions of each class."""
STALE = 5
"""Of a stale index every so-manieth file is unknown."""
GOAL = 0.7
"""The share that all classes together must reach."""
DRIVER = RunSettings(spark=SparkSettings(driver=DriverSettings(memory="2g")))

DOMAINS = {
    "int": (-500, 500, Fraction(1)),
    "decimal(9,2)": (-1000, 1000, Fraction(1, 100)),
    "date": (18_000, 20_000, Fraction(1)),
}
"""By type, the least and greatest value in units, and the unit."""
COLUMN_FORMS = ("{0} {1} {2}", "{0} IN ({2}, {a})", "{0} <> {2}")
"""Conditions on the column itself, for comparison."""


@dataclass
class Counts:
    """Files without a row, those of them left out, and those that an oracle leaves out."""

    free: int = 0
    left_out: int = 0
    provable: int = 0

    def add(self, other: "Counts") -> None:
        self.free += other.free
        self.left_out += other.left_out
        self.provable += other.provable

    @property
    def text(self) -> str:
        share, bound = self.left_out / max(self.free, 1), self.provable / max(self.free, 1)
        return f"{share:.2f} of {bound:.2f}"


def main() -> int:
    """Measure, publish; fail when the goal is not met."""
    spark = build_session("bench-shares", DRIVER)
    figures: list[Figure] = []
    every, stale = Counts(), Counts()
    with tempfile.TemporaryDirectory() as folder:
        for data_type in DOMAINS:
            for form, counts in shares(spark, Path(folder), data_type).items():
                figures.append(Figure(f"{data_type}, {form}", counts.text))
                every.add(counts)
                known = 1 - 1 / STALE
                stale.add(
                    Counts(counts.free, int(counts.left_out * known), int(counts.provable * known))
                )
    spark.stop()
    whole = every.left_out / every.free
    figures.append(Figure("all, every fifth file changed since indexing", stale.text))
    name = "all, share of such files that is left out"
    figures.append(Figure(name, round(whole, 2), f">= {GOAL:g}", whole >= GOAL))
    figures.append(Figure("all, share that can be proved", round(every.provable / every.free, 2)))
    publish("Skipping, share of files without a row", "make bench-skipping", figures)
    return 0 if all(figure.ok for figure in figures) else 1


def shares(spark: SparkSession, folder: Path, data_type: str) -> dict[str, Counts]:
    """By class of condition, what is left out of files of a type."""
    rng = random.Random(data_type)
    low, high, unit = DOMAINS[data_type]
    values = [stored(units, unit, data_type) for units in range(low, high + 1)]
    path = folder / data_type
    path.mkdir()
    kept_as = pa.date32() if data_type == "date" else arrow_type(data_type)
    table = {"k": range(len(values)), "c": pa.array(values, kept_as)}
    pq.write_table(pa.table(table), path / "f.parquet")
    frame = spark.read.parquet(str(path))
    holdings = [drawn_file(rng, len(values)) for _ in range(FILES)]
    found: dict[str, Counts] = {}
    classes: dict[str, str] = {}
    for form in (*COLUMN_FORMS, *FORMS[data_type]):
        for _ in range(EACH):
            text = condition(rng, form, low, high, unit, data_type)
            classes.setdefault(text, class_name(form))
    truths = truths_of(frame, list(classes))
    demands = demands_of(frame, list(truths))
    known = bounds_table(holdings, data_type, values)
    for text, truth in truths.items():
        counts = judged(demands[text], truth, holdings, data_type, known, text)
        found.setdefault(classes[text], Counts()).add(counts)
    return found


def class_name(form: str) -> str:
    """A form as the table names it."""
    return form.format("c", "op", "x", "x", a="a", b="b", n="n", y="y", s="s", d="d")


def stored(units: int, unit: Fraction, data_type: str) -> object:
    """A value as Arrow takes it."""
    if data_type == "date":
        return date.fromordinal(date(1970, 1, 1).toordinal() + units)
    return (
        units
        if unit == 1
        else pa.scalar(units, pa.int64()).cast(pa.decimal128(19, 0)).as_py() / 100
    )


def drawn_file(rng: random.Random, count: int) -> list[int]:
    """Places of some values near each other: what a file holds."""
    start = rng.randrange(count - WIDEST)
    return sorted(start + rng.randrange(WIDEST) for _ in range(rng.randint(2, 20)))


def condition(
    rng: random.Random, form: str, low: int, high: int, unit: Fraction, data_type: str
) -> str:
    """A condition of a class, with literals that some values are near to."""
    units = rng.randint(low, high)
    text = f"CAST({float(units * unit)} AS {data_type})"
    if data_type == "date":
        text = f"date'{stored(units, unit, data_type)}'"
    small = rng.choice([-7, -3, -1, 1, 2, 3, 5])
    return form.format(
        "c",
        rng.choice(OPERATORS),
        text,
        f"CAST({float(units * unit)} AS double)",
        a=f"CAST({small} AS {data_type})" if data_type != "date" else text,
        b=rng.choice([small, round(float(units * unit))]) if data_type != "date" else small * 100,
        n=rng.choice([-31, -1, 1, 30, 90]),
        y=rng.choice([2019, 2020, 2022, 2024]),
    )


def truths_of(frame: DataFrame, texts: list[str]) -> dict[str, Mask]:
    """For each condition, for each value whether it is TRUE; without those that Spark refuses."""
    answers = [sql.expr(f"({text}) <=> true").alias(f"t{n}") for n, text in enumerate(texts)]
    try:
        table = frame.select("k", *answers).toArrow().sort_by("k")
    except PySparkException:
        if len(texts) == 1:
            return {}
        half = len(texts) // 2
        return truths_of(frame, texts[:half]) | truths_of(frame, texts[half:])
    return {text: table.column(f"t{n}").to_numpy().astype(np.bool_) for n, text in enumerate(texts)}


def demands_of(frame: DataFrame, texts: list[str]) -> dict[str, Predicate]:
    """What each condition demands of the column."""
    rule = JavaRule(frame.sparkSession)
    (header,) = rule.describe(frame._jdf, SETTINGS)
    known = columns(json.loads(header))
    serialised = json.loads(rule.serialise(frame.selectExpr(*texts)._jdf))
    return {
        text: catalyst.predicate([each["expression"]], known)
        for text, each in zip(texts, serialised, strict=True)
    }


def judged(
    demand: Predicate,
    truth: Mask,
    holdings: list[list[int]],
    data_type: str,
    known: FileTable,
    text: str,
) -> Counts:
    """What is left out for one condition."""
    index = IndexDefinition("i1", "MIN_MAX", (column_term(("c",), data_type),))
    definition = SkippingDefinition(Target("file:/t"), ReaderFingerprint("parquet"), (index,))
    keep = evaluate(demand, definition, known).keep
    needed = np.array([truth[held].any() for held in holdings])
    possible = np.array([truth[held[0] : held[-1] + 1].any() for held in holdings])
    if (needed & ~keep).any():
        raise AssertionError(f"a file with a row is left out: {text}")
    return Counts(int((~needed).sum()), int((~keep).sum()), int((~possible).sum()))


def bounds_table(holdings: list[list[int]], data_type: str, values: list[object]) -> FileTable:
    """What an index of bounds knows about the files."""
    kept_as = arrow_type(data_type)

    def bound(places: list[int]) -> pa.Array:
        found = pa.array([values[place] for place in places])
        return found.cast(pa.int32()) if data_type == "date" else found.cast(kept_as)

    counts = pa.array([len(held) for held in holdings], pa.int64())
    return FileTable.of(
        pa.table(
            {
                "i1.values": counts,
                "i1.nulls": pa.array([0] * len(holdings), pa.int64()),
                "i1.min": bound([held[0] for held in holdings]),
                "i1.max": bound([held[-1] for held in holdings]),
            }
        )
    )


if __name__ == "__main__":
    sys.exit(main())
