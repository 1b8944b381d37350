"""Names of datasets by OpenLineage's naming rules, so that other tools use the same names.

A dataset is a folder of files, or a table. Its namespace is the place, its name the data. Databases
that the rules do not list are named in the same way, by the kind of the database.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from snaploom.models.datasource import DataSource, Jdbc, JdbcDriver
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.outputfolder import DataFormat
from snaploom.planning.databases import DATABASES
from snaploom.planning.tableformats import table_format
from snaploom.planning.tablenames import table_parts
from snaploom.storage import layout

_SPECIAL = re.compile(r"[*?\[\]{}\\]")
_SCHEMES = {"s3a": "s3", "s3n": "s3"}
"""Schemes of Hadoop's clients for what everybody else calls otherwise."""
_BUCKETS = ("s3", "gs")
"""Stores of objects, whose keys begin without a slash."""


@dataclass(frozen=True, order=True)
class DatasetName:
    """What a dataset is called."""

    namespace: str
    """Where it is, such as `s3://lake` or `postgres://db:5432`."""
    name: str
    """What it is there, such as `raw/orders` or `shop.public.orders`."""


def place_dataset(uri: str) -> DatasetName:
    """The dataset that is everything at a place: a folder, a file, or an absolute path."""
    parts = urlsplit(uri)
    scheme = _SCHEMES.get(parts.scheme.lower(), parts.scheme.lower())
    path = re.sub(r"/+", "/", f"/{parts.path}").rstrip("/") or "/"
    if scheme in ("", "file"):
        return DatasetName("file", path)
    if scheme in _BUCKETS:
        path = path[1:] or "/"
    return DatasetName(f"{scheme}://{parts.netloc}", path)


def output_dataset(output: OutputDataset) -> DatasetName:
    """What an output publishes: the folder of its files, or the place of its table."""
    folder = output.spec.output_folder
    is_table = folder.data_format is DataFormat.ICEBERG
    return place_dataset(folder.folder_uri + ("" if is_table else layout.DATA))


def read_datasets(source: DataSource) -> tuple[DatasetName, ...]:
    """What a physical source reads; nothing for a virtual one."""
    files, jdbc = source.spec.hdfs_like, source.spec.jdbc
    if files is not None:
        is_table = table_format(files) is not None
        uris = (glob if is_table else _folder(glob) for glob in files.source_uri_globs)
        return tuple(dict.fromkeys(place_dataset(uri) for uri in uris))
    return () if jdbc is None else (_table_dataset(jdbc),)


def _folder(glob: str) -> str:
    """The innermost folder that holds all that a glob matches; a file by itself as it is."""
    fixed, *rest = _SPECIAL.split(glob, maxsplit=1)
    return fixed.rpartition("/")[0] or "/" if rest else fixed


_NAMESPACES: Mapping[JdbcDriver, str] = {
    JdbcDriver.POSTGRESQL: "postgres",
    JdbcDriver.MYSQL: "mysql",
    JdbcDriver.MARIADB: "mariadb",
    JdbcDriver.SQLSERVER: "sqlserver",
    JdbcDriver.ORACLE: "oracle",
    JdbcDriver.SQLITE: "sqlite",
    JdbcDriver.H2: "h2",
    JdbcDriver.DUCKDB: "duckdb",
}
_SCHEMA = {JdbcDriver.POSTGRESQL: "public", JdbcDriver.SQLSERVER: "dbo"}
"""Where a table is whose reference names no schema."""


def _table_dataset(jdbc: Jdbc) -> DatasetName:
    parts = table_parts(jdbc.table_reference)
    if len(parts) == 1 and jdbc.driver in _SCHEMA:
        parts = (_SCHEMA[jdbc.driver], *parts)
    if jdbc.url is not None:
        address = re.split(r"[?;]", jdbc.url.removeprefix("jdbc:"), maxsplit=1)[0]
        return DatasetName(address, ".".join(parts))
    scheme, database = _NAMESPACES[jdbc.driver], jdbc.database or ""
    port = jdbc.port or DATABASES[jdbc.driver].port
    if jdbc.host is None or port is None:
        return DatasetName(f"{scheme}://{database}", ".".join(parts))
    if parts[0] != database:
        parts = (database, *parts)
    return DatasetName(f"{scheme}://{jdbc.host}:{port}", ".".join(parts))
