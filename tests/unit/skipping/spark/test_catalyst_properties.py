"""A predicate is TRUE for every row for which its condition is (against an oracle)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.runner.quick import examples
from support.skipping.catalystrows import catalyst, holds

from snaploom.skipping.core.definition import column_term
from snaploom.skipping.core.predicates import normal_form
from snaploom.skipping.spark.optimizer.translation.catalyst import predicate
from snaploom.skipping.spark.relations.expressions import Columns

TYPES = {"i": "int", "j": "int", "d": "double", "c": "string", "dt": "date", "flag": "boolean"}
COLUMNS = Columns(tuple(column_term((name,), data_type) for name, data_type in TYPES.items()))

INTEGERS = st.integers(-3, 3)
DOUBLES = st.sampled_from([-1.0, -0.0, 0.0, 1.0, 2.5, float("inf"), float("nan")])
TEXTS = st.text("ab%_", max_size=4)
DAYS = st.integers(-800, 800)
VALUES = {"int": INTEGERS, "double": DOUBLES, "string": TEXTS, "date": DAYS,
          "boolean": st.booleans()}  # fmt: skip

ROWS = st.fixed_dictionaries(
    {name: st.none() | VALUES[data_type] for name, data_type in TYPES.items()}
)


def literals(data_type: str) -> st.SearchStrategy:
    values = VALUES[data_type]
    shown = values.map(str) if data_type == "double" else values
    return (st.none() | shown).map(lambda value: ["lit", value, data_type])


def columns(data_type: str) -> st.SearchStrategy:
    names = [name for name, each in TYPES.items() if each == data_type]
    plain = st.sampled_from(names).map(lambda name: ["col", name, data_type])
    if data_type != "int":
        return plain
    year = st.just(["Year", {}, ["col", "dt", "date"]])
    coalesced = st.tuples(plain, plain | literals("int")).map(lambda pair: ["Coalesce", {}, *pair])
    return plain | year | coalesced


@st.composite
def comparisons(draw: st.DrawFn) -> list:
    data_type = draw(st.sampled_from(["int", "double", "string", "date"]))
    kinds = ["EqualTo", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual"]
    sides = [draw(columns(data_type)), draw(literals(data_type) | columns(data_type))]
    kind = draw(st.sampled_from([*kinds, "EqualNullSafe"]))
    return [kind, {}, *draw(st.permutations(sides))]


@st.composite
def memberships(draw: st.DrawFn) -> list:
    data_type = draw(st.sampled_from(["int", "double", "string", "date"]))
    names = [name for name, each in TYPES.items() if each == data_type]
    column = ["col", draw(st.sampled_from(names)), data_type]
    members = draw(st.lists(literals(data_type), min_size=1, max_size=4))
    if draw(st.booleans()) and data_type != "double":
        return ["InSet", {"type": data_type, "values": [value for _, value, _ in members]}, column]
    return ["In", {}, column, *members]


@st.composite
def text_conditions(draw: st.DrawFn) -> list:
    kind = draw(st.sampled_from(["StartsWith", "EndsWith", "Contains", "Like"]))
    arguments = {"escapeChar": "\\"} if kind == "Like" else {}
    return [kind, arguments, ["col", "c", "string"], draw(literals("string"))]


SUBSTRINGS = st.tuples(st.integers(0, 3), TEXTS).map(
    lambda pair: [
        "EqualTo",
        {},
        ["Substring", {}, ["col", "c", "string"], ["lit", 1, "int"], ["lit", pair[0], "int"]],
        ["lit", pair[1], "string"],
    ]
)
CASTS = st.tuples(st.sampled_from(["EqualTo", "LessThan", "GreaterThan"]), INTEGERS).map(
    lambda pair: [
        pair[0],
        {},
        ["Cast", {"dataType": "double"}, ["col", "i", "int"]],
        ["lit", str(pair[1] + 0.5 * (pair[1] % 2)), "double"],
    ]
)
LEAVES = st.one_of(
    comparisons(),
    memberships(),
    text_conditions(),
    SUBSTRINGS,
    CASTS,
    literals("boolean"),
    st.just(["col", "flag", "boolean"]),
    st.just(["IsNaN", {}, ["col", "d", "double"]]),
    st.sampled_from(sorted(TYPES)).map(lambda name: ["IsNull", {}, ["col", name, TYPES[name]]]),
    st.sampled_from([1, 2]).map(
        lambda n: ["AtLeastNNonNulls", {"n": n}, ["col", "i", "int"], ["col", "d", "double"]]
    ),
)


def grow(inner: st.SearchStrategy) -> st.SearchStrategy:
    two = st.tuples(inner, inner)
    three = st.tuples(inner, inner, inner)
    return st.one_of(
        inner.map(lambda node: ["Not", {}, node]),
        two.map(lambda nodes: ["And", {}, *nodes]),
        two.map(lambda nodes: ["Or", {}, *nodes]),
        two.map(lambda nodes: ["Coalesce", {}, *nodes]),
        two.map(lambda nodes: ["CaseWhen", {}, *nodes]),
        three.map(lambda nodes: ["If", {}, *nodes]),
        three.map(lambda nodes: ["CaseWhen", {}, *nodes]),
        inner.map(lambda node: ["EqualTo", {}, node, ["lit", False, "boolean"]]),
        inner.map(lambda node: ["EqualNullSafe", {}, node, ["lit", True, "boolean"]]),
        inner.map(lambda node: ["IsNotNull", {}, node]),
    )


CONDITIONS = st.recursive(LEAVES, grow, max_leaves=6)


@pytest.mark.slow
@settings(max_examples=examples(500), deadline=None)
@given(condition=CONDITIONS, rows=st.lists(ROWS, min_size=1, max_size=6))
def test_row_that_satisfies_a_condition_satisfies_its_predicate(condition, rows) -> None:
    found = predicate([condition], COLUMNS)
    for row in rows:
        if catalyst(condition, row) is True:
            assert holds(found, row) is True
            assert holds(normal_form(found), row) is True


EXACT = st.one_of(
    st.tuples(st.sampled_from(["EqualTo", "LessThan", "GreaterThanOrEqual"]), literals("double"))
    .map(lambda pair: [pair[0], {}, ["col", "d", "double"], pair[1]]),
    memberships(),
    st.tuples(literals("string")).map(
        lambda pair: ["StartsWith", {}, ["col", "c", "string"], *pair]
    ),
)  # fmt: skip
EXACT_CONDITIONS = st.recursive(
    EXACT,
    lambda inner: st.one_of(
        inner.map(lambda node: ["Not", {}, node]),
        st.tuples(inner, inner).map(lambda nodes: ["And", {}, *nodes]),
        st.tuples(inner, inner).map(lambda nodes: ["Or", {}, *nodes]),
    ),
    max_leaves=5,
)


@pytest.mark.slow
@settings(max_examples=examples(500), deadline=None)
@given(condition=EXACT_CONDITIONS, row=ROWS)
def test_plain_conditions_are_exact_in_both_directions(condition, row) -> None:
    found = normal_form(predicate([condition], COLUMNS))
    assert (holds(found, row) is True) == (catalyst(condition, row) is True)
