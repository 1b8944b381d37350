"""The order in which the children of a node are joined with it.

Left joins by keys of the left side may be done in any order: each adds one column, and no join
depends on what another one added. A join whose right side is not broadcast shuffles the rows as
they are by then, with everything that earlier joins added. So what adds little is joined first;
joins by the same key follow one another, since the rows lie where they must already; and what Spark
broadcasts, which moves no row of the left side, comes last.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from pyspark.sql import DataFrame
from pyspark.sql import types as spark_types

Child = TypeVar("Child")

_TEXT, _OTHER = 20, 8
"""Bytes of a value, as Spark's own estimates have them (`DataType.defaultSize`): of strings and
binaries, and of numbers and times."""


def in_join_order(
    children: Sequence[Child],
    key: Callable[[Child], Hashable],
    width: Callable[[Child], int],
    is_broadcast: Callable[[Child], bool],
) -> list[Child]:
    """The children in the order of their joins; the given order where nothing else decides.

    The children are of one node; `key` gives the columns of the left side by which a child is
    joined, and `width` the bytes that it adds to a row. `is_broadcast` is asked only where the
    order matters.
    """
    if len({key(child) for child in children}) < 2:
        return list(children)
    shuffled: dict[Hashable, list[Child]] = {}
    broadcast: list[Child] = []
    for child in children:
        group = broadcast if is_broadcast(child) else shuffled.setdefault(key(child), [])
        group.append(child)
    groups = sorted(shuffled.values(), key=lambda group: sum(map(width, group)))
    return [*(child for group in groups for child in group), *broadcast]


def bytes_of_row(fields: Iterable[spark_types.StructField]) -> int:
    """Bytes of a row with these fields, as a schema lets one estimate."""
    return sum(_bytes_of(field.dataType) for field in fields)


def _bytes_of(data_type: spark_types.DataType) -> int:
    match data_type:
        case spark_types.StructType():
            return bytes_of_row(data_type.fields)
        case spark_types.ArrayType():
            return _bytes_of(data_type.elementType)
        case spark_types.MapType():
            return _bytes_of(data_type.keyType) + _bytes_of(data_type.valueType)
        case spark_types.StringType() | spark_types.BinaryType():
            return _TEXT
        case _:
            return _OTHER


def is_broadcast(frame: DataFrame) -> bool:
    """Whether Spark's estimate of a frame is within its threshold for broadcasts."""
    conf = frame.sparkSession._jsparkSession.sessionState().conf()
    estimate = frame._jdf.queryExecution().analyzed().stats().sizeInBytes()
    return int(estimate) <= int(conf.autoBroadcastJoinThreshold())
