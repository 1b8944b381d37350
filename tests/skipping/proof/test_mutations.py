"""The proof must fail when skipping is wrong: it is made wrong here, one thing at a time."""

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from support.skipping.onequalsoff import IndexOf, IndexSet, Verdict, judge, needed_files
from support.skipping.proofcases import ProofCase
from support.skipping.proofconditions import Condition, conditions
from support.skipping.proofmetadata import FolderHome
from support.skipping.prooftables import POOLS, ProofTable, make_table

from snaploom.skipping.core import filetable
from snaploom.skipping.core.filetable import FileTable, Matched
from snaploom.skipping.core.predicates import Operator
from snaploom.skipping.spark.interfaces.enable import setting
from snaploom.skipping.spark.optimizer import decision
from snaploom.skipping.spark.optimizer.translation import catalyst
from snaploom.skipping.spark.relations import fingerprint

COLUMNS = ("i", "l", "s", "d")


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> ProofTable:
    return make_table(spark, tmp_path_factory.mktemp("mutations"), "arrow", 1)


@pytest.fixture(scope="module")
def drawn(table: ProofTable) -> list[Condition]:
    columns = {name: table.columns[name] for name in COLUMNS}
    edges = [
        Condition(f"i {operator} {value}", frozenset({"i"}))
        for value in POOLS["int"]
        for operator in ("<=", ">=")
    ]
    return [*conditions(random.Random("mutations"), columns, 30), *edges]


@pytest.fixture
def verdict(
    spark: SparkSession, table: ProofTable, drawn: list[Condition], tmp_path: Path
) -> Callable[[], Verdict]:
    """The verdict about an index that is built and used with whatever is wrong now."""

    def judged() -> Verdict:
        needs = needed_files(spark, table, drawn)
        indexes = IndexSet("MIN_MAX", tuple(IndexOf("MIN_MAX", (name,)) for name in COLUMNS))
        location = FolderHome(tmp_path).build(spark, table, indexes)
        return judge(spark, table, location, [c for c in drawn if c.text in needs], needs)

    return judged


def test_nothing_is_lost_when_nothing_is_wrong(verdict: Callable[[], Verdict]) -> None:
    seen = verdict()
    assert not seen.lost
    assert seen.share > 0.4


def test_negated_clauses_are_noticed(verdict, monkeypatch):
    complements = {**catalyst._COMPLEMENTS, Operator.EQ: Operator.EQ}
    monkeypatch.setattr(catalyst, "_COMPLEMENTS", complements)
    assert verdict().lost


def test_bounds_that_are_off_by_one_are_noticed(verdict, monkeypatch):
    operators = {
        **catalyst._OPERATORS,
        "LessThanOrEqual": Operator.LT,
        "GreaterThanOrEqual": Operator.GT,
    }
    monkeypatch.setattr(catalyst, "_OPERATORS", operators)
    assert verdict().lost


def test_or_taken_for_and_is_noticed(verdict, monkeypatch):
    monkeypatch.setitem(catalyst._HANDLERS, "Or", catalyst._HANDLERS["And"])
    assert verdict().lost


def test_identity_without_length_and_time_is_noticed(case, monkeypatch):
    case.write({"a": [1]}, {"a": [2]}).min_max("a")
    case.write({"a": [9]})

    def by_path(files: FileTable, listed: filetable.Listing) -> Matched:
        found = pc.index_in(listed.paths, value_set=files.column("path"))
        rows = pc.fill_null(found, filetable.UNKNOWN_ROW).to_numpy(zero_copy_only=False)
        return Matched(rows.astype(np.int64), 0, 0)

    monkeypatch.setattr(decision, "match", by_path)
    # The check of inode and change time is a second safeguard, which finds this where there is one.
    monkeypatch.setattr(decision, "tags_of_dropped", lambda _listed, _judged: "")
    with pytest.raises(AssertionError, match="a = 9"):
        case.kept("a = 9")


def test_unknown_files_that_are_dropped_are_noticed(case, monkeypatch):
    case.write({"a": [1]}).min_max("a").write({"a": [1]}, {"a": [2]})

    def strict(self: Matched, table_keep: np.ndarray) -> np.ndarray:
        return (self.rows != filetable.UNKNOWN_ROW) & table_keep[self.rows]

    monkeypatch.setattr(Matched, "keep", strict)
    with pytest.raises(AssertionError, match="a = 2"):
        case.kept("a = 2")


def test_ignored_fingerprint_is_noticed(case: ProofCase, monkeypatch: pytest.MonkeyPatch) -> None:
    csv = case.of_format("csv").write_sql("SELECT '2024-01-01 01:00:00'", "SELECT '2024-06-01 0:0'")
    table = csv.of_table("proof_mutated", "ts timestamp", "csv").min_max("ts")
    monkeypatch.setattr(fingerprint, "differences", lambda indexed, now: ())
    with (
        setting(case.spark, "spark.sql.session.timeZone", "America/New_York"),
        pytest.raises(AssertionError, match="ts = "),
    ):
        table.kept("ts = timestamp'2024-01-01 06:00:00+00:00'")
