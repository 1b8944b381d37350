"""Random small models woven by Spark, and by a few lines of Python that read like the rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from support.weaving.smallmodels import Loom, key_field, relationship, weave_into

from snaploom.errors import RowsMultiplied

pytestmark = pytest.mark.spark
NUMBERS = st.none() | st.integers(0, 3)
TEXTS = st.none() | st.sampled_from(["0", "1", "01", " 2", "3.", "x"])


class OneToMany(Exception):
    """The oracle's row-count rule."""


@dataclass(frozen=True)
class Node:
    """A source: how it is joined to an earlier one, and its rows."""

    parent: int
    grouped: bool
    textual: bool
    """Whether the child writes the key as text, cast to integer."""
    rows: list[dict[str, Any]]


@st.composite
def models(draw: st.DrawFn) -> list[Node]:
    count = draw(st.integers(2, 5))
    parents = [-1] + [draw(st.integers(0, number - 1)) for number in range(1, count)]
    nodes = []
    for number, parent in enumerate(parents):
        textual = draw(st.booleans())
        columns: dict[str, st.SearchStrategy[Any]] = {"v": NUMBERS}
        if number:
            columns["own"] = TEXTS if textual else NUMBERS
        columns |= {f"to{c}": NUMBERS for c, p in enumerate(parents) if p == number}
        unique_by = None if draw(st.booleans()) or not number else (lambda row: row["own"])
        rows = draw(st.lists(st.fixed_dictionaries(columns), max_size=6, unique_by=unique_by))
        nodes.append(Node(parent, draw(st.booleans()), textual, rows))
    return nodes


def expected(nodes: list[Node], number: int = 0) -> list[dict[str, Any]]:
    """Every row of a node with its children joined, in no order."""
    children = [i for i, node in enumerate(nodes) if node.parent == number]
    woven = {child: expected(nodes, child) for child in children}
    result = []
    for row in nodes[number].rows:
        packed: dict[str, Any] = {"data": row}
        for child in children:
            key = row[f"to{child}"]
            found = [r for r in woven[child] if key is not None and as_key(r["data"]["own"]) == key]
            if nodes[child].grouped:
                packed[f"n{child}"] = sorted(found, key=canonical) or None
            elif len(found) > 1:
                raise OneToMany
            else:
                packed[f"n{child}"] = found[0] if found else None
        result.append(packed)
    return result


def as_key(value: int | str | None) -> int | None:
    if isinstance(value, str):
        return {"0": 0, "1": 1, "01": 1, " 2": 2}.get(value)
    return value


def canonical(value: Any) -> str:
    """One text a value; arrays in an order of their own."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{k}:{canonical(v)}" for k, v in sorted(value.items())) + "}"
    if isinstance(value, list):
        return "[" + ",".join(sorted(map(canonical, value))) + "]"
    return repr(value)


def loom_of(nodes: list[Node]) -> Loom:
    cast = {"castDataType": {"integer": {}}}
    relationships = [
        relationship(
            f"r{number}",
            {
                f"n{node.parent}": [key_field(f"to{number}", **cast)],
                f"n{number}": [key_field("own", "string" if node.textual else "integer", **cast)],
            },
        )
        for number, node in enumerate(nodes)
        if number
    ]
    others = [f"n{number}" for number in range(1, len(nodes))]
    group_by = {f"n{i}": ["own"] for i, node in enumerate(nodes) if i and node.grouped}
    return Loom("n0", others, relationships, group_by)


def frame_of(spark: SparkSession, nodes: list[Node], number: int) -> DataFrame:
    names = ["v"] + (["own"] if number else [])
    names += [f"to{c}" for c, node in enumerate(nodes) if node.parent == number]
    text = nodes[number].textual
    schema = ", ".join(f"{n} {'string' if n == 'own' and text else 'int'}" for n in names)
    return spark.createDataFrame([tuple(r[n] for n in names) for r in nodes[number].rows], schema)


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(nodes=models())
def test_weaving_equals_the_oracle(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, nodes: list[Node]
) -> None:
    frames = {f"n{number}": frame_of(spark, nodes, number) for number in range(len(nodes))}
    weave = loom_of(nodes).weave(frames)
    folder = tmp_path_factory.mktemp("oracle")
    try:
        rows = expected(nodes)
    except OneToMany:
        with pytest.raises(RowsMultiplied):
            weave_into(folder, weave, spark)
        return
    woven = weave_into(folder, weave, spark)
    got = [row.asDict(recursive=True) for row in woven.rows()]
    assert sorted(map(canonical, got)) == sorted(map(canonical, rows))
    assert woven.counts.rows == len(rows)
    for join in woven.counts.joins:
        assert join.in_ == join.out >= join.matched
