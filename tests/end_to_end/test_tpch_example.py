"""TPC-H at a small scale: line items with all they refer to, and a query of TPC-H without joins."""

from collections.abc import Iterator

import duckdb
import pytest
from support.documentation.examples import Example, Shell, copy_example, published_files

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

TABLES = ("lineitem", "orders", "customer", "part", "supplier", "partsupp", "nation", "region")
BY_HAND = """
SELECT l AS data,
       {data: c} AS customer, {data: cn} AS customer_nation, {data: cr} AS customer_region,
       {data: o} AS orders, {data: p} AS part, {data: ps} AS partsupp,
       {data: s} AS supplier, {data: sn} AS supplier_nation, {data: sr} AS supplier_region
FROM lineitem l
JOIN orders o ON o_orderkey = l_orderkey
JOIN customer c ON c_custkey = o_custkey
JOIN nation cn ON cn.n_nationkey = c_nationkey
JOIN region cr ON cr.r_regionkey = cn.n_regionkey
JOIN part p ON p_partkey = l_partkey
JOIN partsupp ps ON ps_partkey = l_partkey AND ps_suppkey = l_suppkey
JOIN supplier s ON s_suppkey = l_suppkey
JOIN nation sn ON sn.n_nationkey = s_nationkey
JOIN region sr ON sr.r_regionkey = sn.n_regionkey
"""
WOVEN = """
SELECT data, {data: orders.customer.data} AS customer,
       {data: orders.customer.customer_nation.data} AS customer_nation,
       {data: orders.customer.customer_nation.customer_region.data} AS customer_region,
       {data: orders.data} AS orders, part, partsupp, {data: supplier.data} AS supplier,
       {data: supplier.supplier_nation.data} AS supplier_nation,
       {data: supplier.supplier_nation.supplier_region.data} AS supplier_region
FROM wide
"""
LOCAL_SUPPLIERS = """
SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer, orders, lineitem, supplier, nation, region
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey
  AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey
  AND r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'
GROUP BY n_name ORDER BY revenue DESC
"""
"""Query 5 of TPC-H."""
WITHOUT_JOINS = """
SELECT supplier.supplier_nation.data.n_name,
       sum(data.l_extendedprice * (1 - data.l_discount)) AS revenue
FROM wide
WHERE orders.customer.data.c_nationkey = supplier.data.s_nationkey
  AND supplier.supplier_nation.supplier_region.data.r_name = 'ASIA'
  AND year(orders.data.o_orderdate) = 1994
GROUP BY ALL ORDER BY revenue DESC
"""


@pytest.fixture(scope="module")
def tables(
    shared_shell: Shell, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[duckdb.DuckDBPyConnection]:
    """TPC-H's tables, and `wide` with what the README's commands published."""
    example: Example = copy_example("tpch", tmp_path_factory.mktemp("tpch"), shared_shell)
    example.run_readme()
    [files] = published_files(example.folder / "wide").values()
    with duckdb.connect() as connection:
        for table in TABLES:
            path = example.folder / "sources" / "1998-12-31" / f"{table}.parquet"
            connection.execute(f"CREATE VIEW {table} AS FROM '{path}'")
        connection.execute(
            f"CREATE VIEW wide AS FROM read_parquet({files}, hive_partitioning = false)"
        )
        yield connection


def test_published_rows_are_those_of_a_join_by_hand(tables: duckdb.DuckDBPyConnection) -> None:
    for left, right in ((BY_HAND, WOVEN), (WOVEN, BY_HAND)):
        assert not tables.execute(f"({left}) EXCEPT ALL ({right}) LIMIT 3").fetchall()


def test_local_supplier_volume_needs_no_join(tables: duckdb.DuckDBPyConnection) -> None:
    answer = tables.execute(WITHOUT_JOINS).fetchall()
    assert answer == tables.execute(LOCAL_SUPPLIERS).fetchall()
    assert answer
