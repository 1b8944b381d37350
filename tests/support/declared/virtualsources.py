"""Virtual sources, and statements that a query of one must not contain."""

from collections.abc import Mapping
from typing import Any


def over(query: str, alias: str = "src", source: str = "raw") -> dict[str, Any]:
    """The spec of a simpleVirtual source."""
    return {"simpleVirtual": {"dataSource": source, "alias": alias, "dataQuery": query}}


def at_any_time(
    data_query: str, snapshot_query: str, sources: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The spec of a complexVirtual source; `sources` by alias."""
    aliases = sources or {"src": "raw"}
    return {
        "complexVirtual": {
            "dataSources": [
                {"dataSource": name, "alias": alias} for alias, name in aliases.items()
            ],
            "snapshotQuery": snapshot_query,
            "dataQuery": data_query,
        }
    }


HOSTILE = {
    "select * from secret": "secret",
    "select * from src union all select * from secret": "secret",
    "select (select max(id) from secret) m from src": "secret",
    "select * from src cross join lateral (select * from secret)": "secret",
    "select * from src where id in (select id from global_temp.src)": "global_temp.src",
    "select * from spark_catalog.default.src": "spark_catalog",
    "with secret as (select * from secret) select * from secret": "secret",
    "with a as (select * from b), b as (select * from src) select * from a": "b",
    "select * from text.`/etc/passwd`": "/etc/passwd",
    "select * from `csv`.`s3a://bucket/key`": "s3a://bucket/key",
    "select * from identifier('sec' || 'ret')": "identifier",
    "select * from src version as of 1": "AS OF",
    "select * from read_files('/etc')": "read_files",
    "select * from python_worker_logs()": "python_worker_logs",
    "select * from range(3)": "range",
    "select transform(id) using 'cat' from src": "TRANSFORM",
    "select reflect('java.lang.System', 'exit', 1) from src": "reflect",
    "select `Java_Method`('java.lang.System', 'exit', 1) from src": "java_method",
    "select system.builtin.try_reflect('a', 'b') from src": "try_reflect",
    "select sum(id) over w from src window w as (partition by reflect('a', 'b'))": "reflect",
    "select somebodys.function(id) from src": "somebodys.function",
    "select from_protobuf(id, 'a', '/etc/passwd') from src": "from_protobuf",
    "table secret": "",
    "insert into src select 1": "INSERT",
    "insert overwrite directory '/tmp/x' select * from src": "INSERT",
    "from src insert overwrite directory '/tmp/x' using csv select *": "",
    "create temporary function f as 'a.B'": "CREATE",
    "create table t as select * from src": "CREATE",
    "drop table src": "DROP",
    "set spark.sql.runSQLOnFiles=true": "SET",
    "add jar '/tmp/x.jar'": "command",
    "execute immediate 'select 1'": "immediate",
    "cache table t as select * from src": "CACHE",
    "select 1 from src; drop table src": "found another",
    "select id) union (select id": "",
}
"""Queries over `src` that are no business of a virtual source, and what an error must name."""
