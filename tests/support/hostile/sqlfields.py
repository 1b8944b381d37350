"""Every field of a declaration whose text becomes SQL, as a resource around a hostile part.

A part is written so that it can stand where a value stands; queries select it.
"""

from __future__ import annotations

from collections.abc import Callable

from support.declared.declarations import (
    Raw,
    complex_,
    document,
    files,
    key,
    output,
    relationship,
    simple,
)

AT = "{{ SNAPSHOT | UNIX_SECONDS }}"
COLUMN = "col"
"""Stands in a part for the column that its place may read."""


def _transformer(part: str) -> Raw:
    change = {
        "selectors": [{"coordinateIncludeRegex": ".*"}],
        "expression": {"sql": part.replace(COLUMN, "value")},
    }
    return document("FieldTransformer", "t", {"transformers": [change]})


def _index(**changes: object) -> Raw:
    spec = {
        "target": {"dataSource": "customer"},
        "indexes": [{"type": "MIN_MAX", "column": "id"}],
        "store": {"parquet": {"location": "/indexes"}},
    }
    return document("SkippingIndex", "i", {**spec, **changes})


def _table(part: str) -> Raw:
    spec = {
        "driver": "POSTGRESQL",
        "host": "db",
        "database": "shop",
        "credentials": {"fromEnvironment": {"userVariable": "U", "passwordVariable": "P"}},
        "tableReference": "t",
        "snapshot": {"fromReadTime": {}},
        "tablePredicates": [part.replace(COLUMN, "a")],
    }
    return document("DataSource", "j", {"jdbc": spec})


DATABASE = "condition of a database"
SQL_FIELDS: dict[str, tuple[Callable[[str], Raw], str]] = {
    "simpleVirtual dataQuery": (
        lambda part: simple("v", f"SELECT {part} AS x FROM c"), "spec.simpleVirtual.dataQuery",
    ),
    "complexVirtual dataQuery": (
        lambda part: complex_("v", f"SELECT {part} AS x, {AT} AS at FROM c0", "a"),
        "spec.complexVirtual.dataQuery",
    ),
    "complexVirtual snapshotQuery": (
        lambda part: complex_(
            "v", f"SELECT {AT} FROM c0", "a",
            snapshotQuery=f"SELECT {part} AS interval_start, 2 AS interval_end FROM c0",
        ),
        "spec.complexVirtual.snapshotQuery",
    ),
    "relationship query": (
        lambda part: relationship("r", (["a"], [key(COLUMN, query=part)]), (["b"], [key("id")])),
        "spec.representations[0].joinKey[0].query",
    ),
    "transformer expression": (_transformer, "spec.transformers[0].expression.sql"),
    "check": (
        lambda part: output(checks=[{"name": "c", "expression": part.replace(COLUMN, "data.col")}]),
        "spec.checks[0].expression",
    ),
    "index expression": (
        lambda part: _index(indexes=[{"type": "MIN_MAX", "expression": part}]),
        "spec.indexes[0].expression",
    ),
    "index where": (lambda part: _index(where=part), "spec.where"),
    DATABASE: (_table, "spec.jdbc.tablePredicates[0]"),
}  # fmt: skip
"""By field: the resource around a part, and the path of the field."""
SPARK_FIELDS = tuple(field for field in SQL_FIELDS if field != DATABASE)
"""Those whose text Spark evaluates; a database has functions and rules of its own."""

OTHERS: tuple[Raw, ...] = (files("customer"), files("a"), files("b"))
"""What the resources refer to."""
