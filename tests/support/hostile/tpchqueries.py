"""The 22 queries of TPC-H in Spark's SQL, with the values of their validation run."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession
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

from snaploom.spark.jvm import jvm_of

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


_EXAMPLE = re.compile(r"\n\s*> (.*?);\s*(?=\n|$)", re.DOTALL)


@dataclass(frozen=True)
class Documented:
    """One function of Spark."""

    name: str
    class_name: str
    """Without its package."""
    examples: tuple[str, ...]
    """Statements of its documentation, SET among them."""


def spark_functions(spark: SparkSession) -> list[Documented]:
    """Every function and table function that Spark has before anybody registers one."""
    analysis = jvm_of(spark).org.apache.spark.sql.catalyst.analysis
    return [
        one
        for registry in (analysis.FunctionRegistry, analysis.TableFunctionRegistry)
        for one in _functions(registry.builtin())
    ]


def _functions(registry: JavaObject) -> list[Documented]:
    names = registry.listFunction()
    found = []
    for place in range(names.size()):
        info = registry.lookupFunction(names.apply(place)).get()
        examples = _EXAMPLE.findall("\n" + (info.getExamples() or ""))
        class_name = str(info.getClassName()).rpartition(".")[2]
        found.append(Documented(str(info.getName()), class_name, tuple(examples)))
    return found


SCHEMAS = {
    "lineitem": "l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber int, "
    "l_quantity decimal(15,2), l_extendedprice decimal(15,2), l_discount decimal(15,2), "
    "l_tax decimal(15,2), l_returnflag string, l_linestatus string, l_shipdate date, "
    "l_commitdate date, l_receiptdate date, l_shipinstruct string, l_shipmode string, "
    "l_comment string",
    "orders": "o_orderkey bigint, o_custkey bigint, o_orderstatus string, "
    "o_totalprice decimal(15,2), o_orderdate date, o_orderpriority string, o_clerk string, "
    "o_shippriority int, o_comment string",
    "customer": "c_custkey bigint, c_name string, c_address string, c_nationkey bigint, "
    "c_phone string, c_acctbal decimal(15,2), c_mktsegment string, c_comment string",
    "part": "p_partkey bigint, p_name string, p_mfgr string, p_brand string, p_type string, "
    "p_size int, p_container string, p_retailprice decimal(15,2), p_comment string",
    "supplier": "s_suppkey bigint, s_name string, s_address string, s_nationkey bigint, "
    "s_phone string, s_acctbal decimal(15,2), s_comment string",
    "partsupp": "ps_partkey bigint, ps_suppkey bigint, ps_availqty int, "
    "ps_supplycost decimal(15,2), ps_comment string",
    "nation": "n_nationkey bigint, n_name string, n_regionkey bigint, n_comment string",
    "region": "r_regionkey bigint, r_name string, r_comment string",
}
"""Columns of the tables."""

_TEXT = Path(__file__).with_name("tpch.sql").read_text("utf-8").partition("\n")[2]
QUERIES = tuple(query.strip() for query in _TEXT.split(";"))
"""In the order of the standard."""
