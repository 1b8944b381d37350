"""Advice about columns whose best index is known beforehand."""

import numpy as np
import pyarrow as pa
import pytest
import yaml

from snaploom.plugins.advice.recommendations import (
    Advice,
    Observed,
    Order,
    Query,
    advise,
    drawn_queries,
    shares,
    simulated,
)
from snaploom.plugins.advice.report import Report, resource_yaml
from snaploom.skipping.core.definition import (
    IndexDefinition,
    ReaderFingerprint,
    SkippingDefinition,
    Target,
    Term,
    column_term,
)
from snaploom.skipping.core.filetable import field_column, nulls_column, values_column
from snaploom.skipping.core.predicates import Comparison, Operator
from snaploom.skipping.core.valueorder import Curve
from snaploom.skipping.indexes.base import index_type

FILES = 32
ROWS = 6400
"""So many that no set holds all values of a file."""
TARGET = Target("file:/data/points", format="parquet", options=(("mergeSchema", "true"),))


def terms(*names: str) -> list[Term]:
    return [column_term((name,), "bigint") for name in names]


def observed(columns: dict[str, np.ndarray]) -> Observed:
    """Rows in order, cut into equal files, with MIN_MAX and VALUE_SET on every column."""
    sample = {column_term((name,), "bigint"): pa.array(v) for name, v in columns.items()}
    indexes: list[IndexDefinition] = []
    rows: dict[str, pa.Array] = {"path": pa.array([str(number) for number in range(FILES)])}
    for term, values in sample.items():
        for kind in ("MIN_MAX", "VALUE_SET"):
            index = IndexDefinition(f"i{len(indexes)}", kind, (term,))
            indexes.append(index)
            rows |= index_rows(index, values)
    definition = SkippingDefinition(TARGET, ReaderFingerprint("parquet"), tuple(indexes))
    return Observed(definition, pa.table(rows), FILES, sample)


def index_rows(index: IndexDefinition, values: pa.Array) -> dict[str, pa.Array]:
    found = []
    for number in range(FILES):
        builder = index_type(index.type).builder(index)
        builder.add([values[number * len(values) // FILES : (number + 1) * len(values) // FILES]])
        found.append(builder.finish())
    fields = index_type(index.type).fields(index)
    return {
        values_column(index.index_id): pa.array([len(values) // FILES] * FILES),
        nulls_column(index.index_id): pa.array([0] * FILES),
        **{
            field_column(index.index_id, name): pa.array([row[name] for row in found], kind)
            for name, kind in fields.items()
        },
    }


def shuffled(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).permutation(ROWS)


def advised(columns: dict[str, np.ndarray], queries: tuple[Query, ...] = ()) -> Advice:
    seen = observed(columns)
    return advise(seen, queries or drawn_queries(seen.sample, 1))


def test_a_column_in_order_gets_bounds():
    advice = advised({"day": np.arange(ROWS)})
    assert [index.label for index in advice.indexes] == ["MIN_MAX(day)"]
    assert advice.share > 0.9
    assert advice.order is None


def test_a_column_with_few_values_in_each_file_gets_a_set():
    kinds = np.repeat(np.arange(FILES), ROWS // FILES) * 7919 % 101
    edges = np.tile([0] + [1] * (ROWS // FILES - 2) + [100], FILES)
    advice = advised({"kind": np.where(edges == 1, kinds, edges)})
    assert [index.label for index in advice.indexes] == ["VALUE_SET(kind)"]


def test_two_unsorted_columns_are_sorted_along_a_curve():
    advice = advised({"x": shuffled(1), "y": shuffled(2)})
    assert advice.indexes == ()
    assert advice.order.curve is not Curve.LINEAR
    assert {term.label for term in advice.order.terms} == {"x", "y"}
    labels = [index.label for index in advice.indexes_after_sorting]
    assert labels == ["MIN_MAX(x)", "MIN_MAX(y)"]


def test_queries_of_one_column_need_a_sort_by_that_column():
    (x, _) = terms("x", "y")
    queries = tuple(
        Query(f"x = {value}", Comparison(x, Operator.EQ, value)) for value in range(0, ROWS, 97)
    )
    advice = advised({"x": shuffled(1), "y": shuffled(2)}, queries)
    assert advice.order == Order(Curve.LINEAR, (x,))
    assert [column.why for column in advice.columns if column.term.label == "y"] == [
        "no query speaks of it"
    ]


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (np.full(ROWS, 7), "the same value everywhere"),
        (np.arange(ROWS) % 2, "sorting by it would help"),
        (shuffled(3), "sorting by it would help"),
    ],
)
def test_columns_that_no_index_helps_have_a_reason(values: np.ndarray, why: str):
    (column,) = advised({"c": values}).columns
    assert why in column.why


@pytest.mark.parametrize("curve", list(Curve))
def test_simulated_bounds_are_those_of_really_sorted_rows(curve: Curve):
    (x,) = terms("x")
    values = shuffled(4)
    files, (index,) = simulated({x: pa.array(values)}, Order(curve, (x,)), FILES)
    minimum = files.column("i0.min").to_numpy()
    expected = np.sort(values)[:: ROWS // FILES]
    # The curves know a thousandth of the rows only; the sort knows all.
    assert np.abs(minimum - expected).max() <= (0 if curve is Curve.LINEAR else ROWS // 400)
    definition = observed({"x": values}).definition
    query = Query("", Comparison(x, Operator.EQ, 17))
    assert shares([query], definition, [index], files)[0] >= 1 - 2 / FILES


def test_advice_is_the_same_for_the_same_seed():
    columns = {"x": shuffled(1), "y": shuffled(2)}
    assert advised(columns) == advised(columns)
    sample = observed(columns).sample
    assert drawn_queries(sample, 1) != drawn_queries(sample, 2)


def test_the_resource_is_one_that_can_be_applied():
    index = IndexDefinition("i1", "MIN_MAX", (column_term(("y",), "int"),))
    nested = IndexDefinition("i2", "VALUE_SET", (column_term(("a b", "n"), "int"),))
    text = resource_yaml(TARGET, [index, nested], "file:/indexes")
    spec = yaml.safe_load(text)["spec"]
    assert spec["target"]["path"] == {
        "uri": TARGET.uri,
        "format": "parquet",
        "options": {"mergeSchema": "true"},
    }
    assert [each["column"] for each in spec["indexes"]] == ["y", "`a b`.n"]


def test_the_report_fits_eighty_columns():
    advice = advised({"x" * 60: shuffled(1), "y": shuffled(2)})
    report = Report("file:/data/" + "long/" * 30, advice, FILES, FILES, ROWS, 40, False, (), "")
    assert max(map(len, str(report).splitlines())) <= 80
    assert report.document["sort"]["by"] == [term.label for term in advice.order.terms]
