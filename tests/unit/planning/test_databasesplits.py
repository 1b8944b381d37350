"""What the predicates of a split leave in doubt: DuckDB decides the same for every row."""

from itertools import pairwise

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snaploom.sources.databases.drivers import DATABASES
from snaploom.sources.databases.splits import doubt_of

DIALECTS = sorted({database.dialect for database in DATABASES.values()})
VALUES = [None, *range(-12, 13)]

OPERATORS = st.sampled_from(["<", "<=", ">", ">=", "="])

numbers = st.integers(-9, 9)
joined = st.lists(numbers, min_size=1, max_size=3).map(lambda of: ", ".join(map(str, of)))


def conditions_on(compared):
    comparisons = st.one_of(
        st.builds("{} {} {}".format, st.just(compared), OPERATORS, numbers),
        st.builds("{} {} {}".format, numbers, OPERATORS, st.just(compared)),
        st.builds("{} BETWEEN {} AND {}".format, st.just(compared), numbers, numbers),
        st.builds("{} IN ({})".format, st.just(compared), joined),
        st.sampled_from(["Id is null", f"{compared} IS NULL"]),
    )
    both = st.sampled_from(["AND", "or"])
    return st.recursive(comparisons, lambda of: st.builds("({}) {} {}".format, of, both, of))


def ranges_between(bounds):
    """What divides numbers at bounds, as Spark's own `lowerBound` and `numPartitions` do."""
    inner = [f"id >= {one} AND id < {other}" for one, other in pairwise(bounds)]
    return [f"id < {bounds[0]} OR id IS NULL", *inner, f"id >= {bounds[-1]}"]


def rows_that(condition):
    table = f"(SELECT UNNEST({VALUES!r}::INT[]) AS id)".replace("None", "NULL")
    return duckdb.sql(f"SELECT id FROM {table} WHERE {condition}").fetchall()


def rows_not_met_once(predicates):
    met = " + ".join(f"CASE WHEN ({each}) THEN 1 ELSE 0 END" for each in predicates)
    return rows_that(f"({met}) <> 1")


@pytest.mark.slow
@given(st.lists(conditions_on("id"), min_size=1, max_size=5))
def test_rows_in_doubt_are_those_that_do_not_meet_one_predicate(predicates):
    doubted = doubt_of(predicates, "duckdb").condition('"id"') or "false"
    assert rows_that(doubted) == rows_not_met_once(predicates)


remainders = st.integers(1, 5).flatmap(
    lambda by: st.lists(
        st.one_of(
            conditions_on(f"id % {by}"),
            conditions_on(f"(mod(id, {by}))"),
            st.integers(0, by).map(f"id % {by} = {{}}".format),
        ),
        min_size=1,
        max_size=6,
    )
)


@pytest.mark.slow
@given(remainders)
def test_of_remainders_all_rows_that_do_not_meet_one_predicate_are_in_doubt(predicates):
    doubt = doubt_of(predicates, "duckdb")
    doubted = "true" if doubt is None else doubt.condition('"id"') or "false"
    assert set(rows_not_met_once(predicates)) <= set(rows_that(doubted))


@pytest.mark.slow
@pytest.mark.parametrize("parts", [1, 2, 7, 1000])
@pytest.mark.parametrize("form", ["id % {} = {}", "MOD(id, {}) = {}", "(id % {}) IN ({})"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_of_each_remainder_once_only_what_is_below_zero_and_null_are_in_doubt(dialect, form, parts):
    split = [form.format(parts, part) for part in range(parts)]
    below = "x < 0 OR " if parts > 1 else ""
    assert doubt_of(split, dialect).condition("x") == f"{below}x IS NULL"
    assert doubt_of([*split[1:], f"{split[0]} OR id IS NULL OR id % {parts} < 0"], dialect) == (
        doubt_of(["id < 0 OR id IS NULL", "id >= 0"], dialect)
    )


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
        "id % 0 = 1",
        "id % -2 = 1",
        "id % 2.5 = 1",
        "id %% 2 = 1",
        "id %> 2",
        "id <% 2",
        "2 % id = 1",
        "id % 4 % 2 = 1",
        "id % other = 1",
        "mod(other, 2) = 1",
        "abs(id) % 2 = 1",
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


@pytest.mark.parametrize(
    "split",
    [
        ["id % 2 = 0"],
        ["id % 2 = 0", "id % 2 = 2"],
        ["id % 2 = 0", "id % 2 >= 0"],
        ["id % 2 = 0", "id % 3 = 1", "id % 3 = 2"],
    ],
)
def test_remainders_above_zero_that_are_not_met_once_leave_every_row_in_doubt(split):
    assert doubt_of(split, "postgres") is None
