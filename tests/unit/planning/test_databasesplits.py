"""What the predicates of a split leave in doubt: DuckDB says the same of every row."""

from itertools import pairwise

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snaploom.planning.databases import DATABASES
from snaploom.planning.databasesplits import doubt_of

DIALECTS = sorted({database.dialect for database in DATABASES.values()})
VALUES = [None, *range(-12, 13)]

OPERATORS = st.sampled_from(["<", "<=", ">", ">=", "="])

numbers = st.integers(-9, 9)
comparisons = st.one_of(
    st.builds("{} {} {}".format, st.just("id"), OPERATORS, numbers),
    st.builds("{} {} {}".format, numbers, OPERATORS, st.just("id")),
    st.builds("id BETWEEN {} AND {}".format, numbers, numbers),
    st.lists(numbers, min_size=1, max_size=3).map(lambda of: f"id IN ({', '.join(map(str, of))})"),
    st.just("Id is null"),
)
conditions = st.recursive(
    comparisons, lambda of: st.builds("({}) {} {}".format, of, st.sampled_from(["AND", "or"]), of)
)


def ranges_between(bounds):
    """What divides numbers at bounds, as Spark's own `lowerBound` and `numPartitions` do."""
    inner = [f"id >= {one} AND id < {other}" for one, other in pairwise(bounds)]
    return [f"id < {bounds[0]} OR id IS NULL", *inner, f"id >= {bounds[-1]}"]


@given(st.lists(conditions, min_size=1, max_size=5))
def test_rows_in_doubt_are_those_that_do_not_meet_one_predicate(predicates):
    doubt = doubt_of(predicates, "duckdb")
    met = " + ".join(f"CASE WHEN ({each}) THEN 1 ELSE 0 END" for each in predicates)
    table = f"(SELECT UNNEST({VALUES!r}::INT[]) AS id)".replace("None", "NULL")
    wrong = duckdb.sql(f"SELECT id FROM {table} WHERE ({met}) <> 1").fetchall()
    condition = doubt.condition('"id"') or "false"
    assert duckdb.sql(f"SELECT id FROM {table} WHERE {condition}").fetchall() == wrong


@given(st.lists(st.integers(-(10**18) + 1, 10**18 - 1), min_size=1, unique=True).map(sorted))
def test_ranges_that_meet_leave_nothing_in_doubt(bounds):
    assert doubt_of(ranges_between(bounds), "postgres").condition('"id"') == ""


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("predicates", "doubted"),
    [
        (["id < 10", "10 <= ID"], "x IS NULL"),
        (["id <= 9 OR id IS NULL", "id >= 11"], "x >= 10 AND x < 11"),
        (["id BETWEEN 1 AND 5", "id IN (6, 7)", "id IS NULL"], "x < 1 OR x >= 8"),
        (["id < 5", "id > - 3 OR id IS NULL"], "x >= -2 AND x < 5"),
        (["id IS NULL"], "x IS NOT NULL"),
    ],
)
def test_doubt_is_a_condition_that_an_index_answers(dialect, predicates, doubted):
    assert doubt_of(predicates, dialect).condition("x") == doubted


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "predicate",
    [
        "mod(id, 2) = 1",
        "id % 2 = 1",
        "id < 5.0",
        "id < 5e3",
        "id < 0x1F",
        "id < 1_000",
        "id < '5'",
        "id < other",
        "other < 5",
        "t.id < 5",
        "id <> 5",
        "NOT id < 5",
        "id IS NOT NULL",
        "id < 5 -- more",
        "id < 5 /* more */",
        "id < 5 || id > 9",
        "id < 1000000000000000000",
        "id IN (SELECT 1)",
        "id < ALL (SELECT 1)",
        "1 < id < 5",
        "id < 5 COLLATE x",
        "id",
        "5",
        "5 < 7",
        "id <",
        "id < 5) GROUP BY (id",
        "id < 5) UNION SELECT 1 FROM t WHERE (id > 5",
        "(" * 2000 + "id < 5" + ")" * 2000,
    ],
)
def test_what_may_mean_something_else_leaves_every_row_in_doubt(dialect, predicate):
    assert doubt_of(["id >= 5", predicate], dialect) is None
