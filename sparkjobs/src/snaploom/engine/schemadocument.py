"""Schemas of files as Spark's types, for files of any writer.

Spark writes the schema of a frame into the footers of Parquet and takes it from there again,
user-defined types included: classes by their names, whose modules PySpark imports. So no schema
becomes PySpark's types before `planning.schemas` has read it, which knows the harmless ones.
"""

from __future__ import annotations

import json
from collections.abc import Collection

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import types as spark

from snaploom.engine.fields import fold_case
from snaploom.errors import SourceSchemaInvalid
from snaploom.planning.schemas import parse_schema

HIVE_PLACE = "_col"
"""Hive's names of columns of ORC files, by their place: Spark reads a file that has only such names
by the places of its columns."""
_FAILURES = (
    ValueError, TypeError, LookupError, AttributeError, AssertionError, PySparkException,
    RecursionError,
)  # fmt: skip
"""PySpark's errors about a type, a collation or a reference system that it does not know."""


def struct_from(document: str, resource: str = "", path: str = "") -> spark.StructType:
    """The schema in a JSON document, as `StructType.json()` gives it.

    Raises:
        SourceSchemaInvalid: it is none, or has types that are classes by their names.
    """
    try:
        parse_schema(document, "")
        return spark.StructType.fromJson(json.loads(document))
    except _FAILURES as error:
        raise SourceSchemaInvalid(
            "this is not a schema that Snaploom reads",
            resource=resource,
            path=path,
            found=str(error)[:1000] or type(error).__name__,
            expected="types of Spark's own",
            hint="check its writer; write the columns as types that every session knows",
        ) from None


def schema_of(
    frame: DataFrame, resource: str = "", path: str = "", columns: Collection[str] | None = None
) -> spark.StructType:
    """The schema of a frame whose files contain it.

    `columns` are the requested names, ignoring case; None for all. The types of others are not
    checked. Names that Hive gives by place are always requested.

    Raises:
        SourceSchemaInvalid: as `struct_from`.
    """
    document = str(frame._jdf.schema().json())
    if columns is not None:
        wanted = {fold_case(name) for name in columns}
        parsed = json.loads(document)
        parsed["fields"] = [
            field
            for field in parsed["fields"]
            if fold_case(field["name"]) in wanted or field["name"].startswith(HIVE_PLACE)
        ]
        document = json.dumps(parsed)
    return struct_from(document, resource, path)
