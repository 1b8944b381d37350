"""Questions about rows that were read: distinct values, keys, inclusion, against plain Python."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snaploom.plugins.discovery.discover import discover
from snaploom.plugins.discovery.keys import single_keys
from snaploom.plugins.discovery.scratch import (
    FILE,
    SNAPSHOT,
    OutOfTime,
    Rows,
    Scratch,
    Values,
    combined,
    inclusion,
    is_unique,
)

_NUMBERS = st.lists(st.none() | st.integers(-(2**60), 2**60), max_size=50)
SCRATCH = Scratch()


def rows(**columns: pa.Array) -> Rows:
    number = len(next(iter(columns.values())))
    table = pa.table({**columns, FILE: [0] * number})
    return Rows(SCRATCH, SCRATCH.create(table), number, number, 2, ("orders.csv",))


def numbers(values: list[int | None]) -> Values:
    return rows(a=pa.array(values, pa.int64())).values(["a"])


@given(_NUMBERS, _NUMBERS, st.booleans())
def test_inclusion_is_the_share_of_distinct_values_whatever_their_type(child, parent, is_text):
    mine, theirs = set(child) - {None}, set(parent) - {None}
    texts = pa.array([None if value is None else str(value) for value in parent], pa.string())
    other = rows(a=texts).values(["a"]) if is_text else numbers(parent)
    found = inclusion(numbers(child), other)
    assert found.distinct == found.compared == len(mine)
    assert found.share == (len(mine & theirs) / len(mine) if mine else 0)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(1, 2)), max_size=20))
def test_uniqueness_is_within_a_snapshot(values: list[tuple[int, int, int]]) -> None:
    columns = {
        name: pa.array([row[place] for row in values], pa.int64())
        for place, name in enumerate(("a", "b", SNAPSHOT))
    }
    read = rows(**columns)
    a, b, snapshot = (read.values([name]) for name in columns)
    expected = bool(values) and len(set(values)) == len(values)
    assert is_unique(combined([a, b]), snapshot) == expected


def test_a_value_that_stands_twice_is_found_by_its_place() -> None:
    assert numbers([3, 5, 4, 5, 6]).repeated() == (
        1, ("record 2 of orders.csv", "record 4 of orders.csv")
    )  # fmt: skip


@pytest.mark.parametrize(
    "sql",
    [
        "FROM read_csv('/etc/passwd')",
        "COPY (SELECT 1) TO '/tmp/written'",
        "ATTACH '/tmp/other.duckdb'",
        "INSTALL spatial",
        "LOAD spatial",
        "SET enable_external_access = true",
    ],
)
def test_nothing_but_its_own_folder_is_open_to_the_database(sql: str) -> None:
    with pytest.raises(Exception, match=r"disabled|locked|not found"):
        SCRATCH.run(sql)


def test_what_takes_too_long_is_interrupted() -> None:
    with pytest.raises(OutOfTime), SCRATCH.within(0.05):
        SCRATCH.run("SELECT count(*) FROM range(10000000000) a WHERE sqrt(range) = 1.5")


@pytest.mark.parametrize(
    ("values", "is_noted"),
    [
        (["1,5", "20,25", "-3,0"], True),
        (["1.234,5", "17"], True),
        (["1,234", "1,234,567"], True),
        (["1,2,3", "4,5"], False),
        (["1,5", "x"], False),
        (["001", "a,b"], False),
    ],
)
def test_numbers_with_commas_are_text_that_is_noted(tmp_path, values, is_noted):
    rows = "".join(f"{n};{value}\n" for n, value in enumerate(values))
    (tmp_path / "a.csv").write_text(f"id;kwh\n{rows}")
    (profile,) = discover([str(tmp_path)], "file:///m/").profiles
    note = "kwh is text: its numbers have commas, which a fieldTransformer can replace"
    assert (note in profile.notes) is is_noted
    assert (("kwh",) in [key.columns for key in single_keys(profile)]) is not is_noted
