"""Warnings about joins in which no row found a match although both sides have keys.

Such a join is right where data is as it is, and most often it is not: the same key is written in
two ways (1 and 1.0, padded text), or the relationship names the wrong field. The snapshot is
published in any case, so that a look at one key of each side may fail and costs nothing but itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from snaploom.engine.fold import Weave
from snaploom.engine.keys import KeyPart, components
from snaploom.errors import SnaploomError
from snaploom.models.common import STRING
from snaploom.models.report import JoinMeasure
from snaploom.planning.keytexts import common_cast
from snaploom.planning.tree import JoinNode

SAMPLED_JOINS = 20
"""Joins of a snapshot whose keys are looked at, by two small queries each: some seconds together.
Of more than these one line lists their names."""
VALUE_LENGTH = 40
"""Characters of a key that a warning shows."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """One key of a side."""

    values: tuple[str, ...]
    """As the data has them."""
    compared: tuple[str | None, ...]
    """As they are compared; None where the cast gave none."""

    def __str__(self) -> str:
        pairs = zip(self.values, self.compared, strict=True)
        return ", ".join(_shown(value, compared) for value, compared in pairs)


def unmatched_warnings(
    weave: Weave, joins: Iterable[JoinMeasure], silent: frozenset[str] = frozenset()
) -> Iterator[str]:
    """A warning for each join that matched nothing although both sides have keys.

    No warning is about the sources `silent`, by field name.
    """
    nodes = {node.field_name: node for node in weave.joins}
    empty = [one for one in joins if one.in_ and not one.matched and one.child not in silent]
    for join in empty[:SAMPLED_JOINS]:
        child = nodes[join.child]
        parent = weave.tree.node(child.parent)
        key = weave.keys[child.number]
        left = _sample(weave, parent, child, key.left)
        right = None if left is None else _sample(weave, child, child, key.right)
        if left is not None and right is not None:
            yield (
                f"`{join.child}`: none of {join.in_} rows found a match by "
                f"DataRelationship/{child.relationship}, although both sides have keys: "
                f"DataSource/{parent.source} has {left} and DataSource/{child.source} has {right}; "
                f"{_advice(weave, parent, child, left, right)}; if no match is right, set "
                f"warnNoMatch: false for `{join.child}`"
            )
    if empty[SAMPLED_JOINS:]:
        names = ", ".join(f"`{one.child}`" for one in empty[SAMPLED_JOINS:])
        yield f"no row found a match in {names} either; their keys were not looked at"


def _sample(
    weave: Weave, side: JoinNode, child: JoinNode, parts: Sequence[KeyPart]
) -> _Sample | None:
    """A key of a side, also if the cast fails; None where there is none, or it was not read."""
    frame = weave.frames[side.field_name]
    session, relationship = frame.sparkSession, child.relationship
    as_it_stands = (replace(part, cast=None, first_casts=()) for part in parts)
    raw = [part.column(session, relationship) for part in as_it_stands]
    cast = [part.column(session, relationship) for part in parts]
    try:
        row = (
            frame.select(
                *(column.cast("string").alias(f"r{i}") for i, column in enumerate(raw)),
                *(column.cast("string").alias(f"c{i}") for i, column in enumerate(cast)),
            )
            .where(" AND ".join(f"r{i} IS NOT NULL" for i in range(len(raw))))
            .first()
        )
    except (PySparkException, Py4JError, SnaploomError):
        return None
    if row is None:
        return None
    return _Sample(tuple(row)[: len(raw)], tuple(row)[len(raw) :])


def _shown(value: str, compared: str | None) -> str:
    if compared == value:
        return _quoted(value)
    return f"{_quoted(value)} (compared as {'NULL' if compared is None else _quoted(compared)})"


def _quoted(value: str) -> str:
    return f"'{value[:VALUE_LENGTH]}{'...' if len(value) > VALUE_LENGTH else ''}'"


def _advice(weave: Weave, parent: JoinNode, child: JoinNode, left: _Sample, right: _Sample) -> str:
    relationship = weave.relationships[child.relationship]
    pairs = zip(components(relationship, parent), components(relationship, child), strict=True)
    for place, (one, other) in enumerate(pairs):
        if one.query is None and other.query is None and one.cast_data_type == STRING:
            cast = common_cast(one.fields_[0].data_type, other.fields_[0].data_type)
            if cast is not None:
                return f"their texts differ: give joinKey[{place}] of every representation {cast}"
    samples = (left, right)
    if any(None in sample.compared for sample in samples):
        return "a key cannot be cast to castDataType and is NULL: correct castDataType or query"
    if any(text != text.strip() for sample in samples for text in sample.compared if text):
        return "a key has blanks around it, as CHAR columns have: remove them by a query, trim(...)"
    return "check that the key has the right fields, and that both sides write it in one way"
