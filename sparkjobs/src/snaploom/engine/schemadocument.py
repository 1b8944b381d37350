"""Schemas of files as Spark's types, whoever wrote the files.

Spark writes the schema of a frame into the footers of Parquet and takes it from there again,
user-defined types included: classes by their names, whose modules PySpark imports. So no schema
becomes PySpark's types before `planning.schemas` has read it, which knows the harmless ones.
"""

from __future__ import annotations

import json

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import types as spark

from snaploom.errors import SourceSchemaInvalid
from snaploom.planning.schemas import parse_schema

_UNREADABLE = (
    AssertionError, AttributeError, LookupError, PySparkException, RecursionError, TypeError,
    ValueError,
)  # fmt: skip
"""What PySpark raises for names of types, and metadata about collations, that it does not know."""


def struct_from(document: str, resource: str = "", path: str = "") -> spark.StructType:
    """The schema that a JSON document tells, as `StructType.json()` gives it.

    Args:
        document: the JSON.
        resource: `Kind/name` of what is read, for messages.
        path: field path in it.

    Raises:
        SourceSchemaInvalid: it is none, or has types that are classes by their names.
    """
    try:
        parse_schema(document, "")
        return spark.StructType.fromJson(json.loads(document))
    except _UNREADABLE as error:
        raise SourceSchemaInvalid(
            "this is not a schema that Snaploom reads",
            resource=resource,
            path=path,
            found=str(error)[:1000],
            expected="types of Spark's own",
            hint="look at what wrote it; write the columns as types that every session knows",
        ) from None


def schema_of(frame: DataFrame, resource: str = "", path: str = "") -> spark.StructType:
    """The schema of a frame whose files told it.

    Args:
        frame: as it was read.
        resource: `Kind/name` of what is read, for messages.
        path: field path in it.

    Raises:
        SourceSchemaInvalid: as `struct_from`.
    """
    return struct_from(str(frame._jdf.schema().json()), resource, path)
