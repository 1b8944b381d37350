"""The oldest PySpark that is supported, the libraries of tables for it, and catalogs."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.servers.postgresserver import USER

ROOT = Path(__file__).resolve().parents[3]


def table_jars() -> list[str]:
    folder = Path(_output_of("jars", "tables"))
    return [str(jar) for jar in sorted(folder.glob("*.jar"))]


def aws_jars() -> str:
    """Amazon's SDK for Iceberg and Hadoop's S3 client for the oldest PySpark, as a class path."""
    folders = [Path(_output_of("jars", *names)) for names in (["glue"], ["s3a", "s3aold"])]
    return ":".join(str(jar) for folder in folders for jar in sorted(folder.glob("*.jar")))


def jdbc_catalog(port: int, password: str) -> dict[str, str]:
    """Properties of a catalog in tables of a PostgreSQL, behind a port of this machine."""
    url = f"jdbc:postgresql://127.0.0.1:{port}/postgres?connectTimeout=5&socketTimeout=20"
    login = {"jdbc.user": USER, "jdbc.password": password, "jdbc.schema-version": "V1"}
    return {"type": "jdbc", "uri": url, "warehouse": "file:///nowhere", **login}


def hive_settings(name: str, port: int) -> dict[str, str]:
    """Settings of a catalog in a metastore of Hive, behind a port of this machine.

    A lock whose answer was lost stays until the metastore misses its heartbeat.
    """
    waiting = {
        "iceberg.hive.lock-creation-timeout-ms": "1000",
        "iceberg.hive.lock-heartbeat-interval-ms": "500",
        "iceberg.hive.lock-timeout-ms": "30000",
        "hive.metastore.client.connect.retry.delay": "0s",
    }
    uri = f"thrift://127.0.0.1:{port}"
    return catalog_settings(name, type="hive", uri=uri, **_PAUSE) | waiting


_PAUSE = {"table-default.commit.status-check.min-wait-ms": "10"}


def glue_settings(endpoint: str) -> dict[str, str]:
    """Settings of a catalog of Glue at an endpoint; who asks is in the environment."""
    service = {"glue.endpoint": endpoint, "client.region": "us-east-1"}
    files = {"io-impl": "org.apache.iceberg.hadoop.HadoopFileIO", "warehouse": "file:///nowhere"}
    return catalog_settings("glue", type="glue", **service, **files, **_PAUSE)


def catalog_settings(name: str, **properties: str) -> dict[str, str]:
    """Settings of Spark for a catalog of Iceberg."""
    prefix = f"spark.sql.catalog.{name}"
    own = {prefix: "org.apache.iceberg.spark.SparkCatalog", f"{prefix}.cache-enabled": "false"}
    return own | {f"{prefix}.{key}": value for key, value in properties.items()}


def rows_by_duckdb(table: str, catalog: str = "") -> list[dict[str, Any]]:
    """Rows of an Iceberg table as DuckDB reads them: of a REST catalog, else by its metadata.

    DuckDB's extension for Iceberg is made for another version of it than the environment has.
    """
    rows: list[dict[str, Any]] = _read_apart(DUCKDB_READER, table, catalog, "")
    return rows


def _read_apart(program: str, *arguments: str) -> Any:
    """What a program prints that has DuckDB's extensions for tables, and delta-rs."""
    folder = _output_of("apart", "duckdbtables")
    command = [sys.executable, "-c", program, folder, *arguments]
    environment = {**os.environ, "PYTHONPATH": folder}
    done = subprocess.run(command, env=environment, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


DUCKDB_READER = """
import json, os, sys, glob
folder, table, catalog, target = sys.argv[1:]
sys.path.insert(0, folder)
import duckdb
reader = duckdb.connect()
reader.execute("SET enable_progress_bar = false")
for name in ("avro", "httpfs", "iceberg"):
    (path,) = glob.glob(f"{folder}/duckdb_extension_{name}/extensions/*/{name}.duckdb_extension")
    reader.execute(f"LOAD '{path}'")
if catalog:
    options = f"TYPE iceberg, ENDPOINT '{catalog}', AUTHORIZATION_TYPE 'none'"
    reader.execute(f"ATTACH '' AS lake ({options})")
place = f"lake.{table}" if catalog else f"iceberg_scan('{table}')"
if target:
    names = ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "REGION", "ENDPOINT_URL")
    key, secret, region, url = (os.environ[f"AWS_{name}"] for name in names)
    login = f"KEY_ID '{key}', SECRET '{secret}', REGION '{region}'"
    server = f"ENDPOINT '{url.partition('://')[2]}', URL_STYLE path, USE_SSL false"
    reader.execute(f"CREATE SECRET (TYPE s3, {login}, {server})")
    reader.execute(f"COPY {place} TO '{target}' (FORMAT parquet)")
else:
    found = reader.execute(f"SELECT to_json(t) FROM {place} t").fetchall()
    print(json.dumps([json.loads(row) for row, in found]))
"""
"""Program of Python: a table's rows as JSON, or from a bucket into a file `target`."""


_DELTA = """
import json, sys, glob, duckdb, polars
from deltalake import DeltaTable
folder, table = sys.argv[1:]
(path,) = glob.glob(f"{folder}/duckdb_extension_delta/extensions/*/delta.duckdb_extension")
reader = duckdb.connect()
reader.execute("SET enable_progress_bar = false")
reader.execute(f"LOAD '{path}'")
found = reader.execute(f"SELECT to_json(t) FROM delta_scan('{table}') t").fetchall()
rust = DeltaTable(table)
own = polars.from_arrow(rust.to_pyarrow_table()).to_dicts()
read = [own, polars.scan_delta(table).collect().to_dicts(), [json.loads(row) for row, in found]]
print(json.dumps(read))
"""


def rows_of_delta(table: str) -> list[list[dict[str, Any]]]:
    """Rows of a table of Delta as delta-rs, Polars and DuckDB read them."""
    return _read_apart(_DELTA, table)


def comet_jar() -> Path:
    (jar,) = Path(_output_of("jars", "comet")).glob("*.jar")
    return jar


def run_tests(*files: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run test files on the oldest PySpark, with some environment variables."""
    places = [_output_of("apart", "oldspark"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, **variables, "PYTHONPATH": os.pathsep.join(filter(None, places))}
    # Neither a Spark home nor the workers' of the process that runs us.
    for name in ("SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_GATEWAY_PORT"):
        environment.pop(name, None)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files]
    return subprocess.run(
        command, cwd=ROOT, env=environment, text=True, capture_output=True, check=False
    )


def _output_of(script: str, *arguments: str) -> str:
    command = [str(ROOT / ".ci" / script), *arguments]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
