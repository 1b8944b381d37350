"""Resolves names of columns as people write them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sql

from snaploom.errors import IndexNotPossible
from snaploom.hadoop.jvm import jvm_of
from snaploom.skipping.core.terms import Term, arrow_type
from snaploom.skipping.indexes.checks import SUPPORTED
from snaploom.skipping.spark.relations.columns import Columns


def column_named(
    columns: Columns,
    session: SparkSession,
    name: str,
    advice: Callable[[], str] | None = None,
) -> Term:
    """Term of a column such as `a.b`, spelt as in the schema; `advice` ends the error's hint.

    Raises:
        IndexNotPossible: there is no such column, or no index can be kept about its type.
    """
    term = columns.find(_names(session, name))
    if term is None:
        raise IndexNotPossible(
            f"there is no column {name}",
            found=name,
            expected=", ".join(each.label for each in columns.terms[:20]),
            hint="names with dots need backticks, fields of structs are written a.b; "
            + (
                "where only some files have the column, read the folder with a schema that has it: "
                "mergeSchema=true for Parquet and ORC"
                if advice is None
                else advice()
            ),
        )
    if arrow_type(term.data_type) is None:
        raise IndexNotPossible(
            f"no index can be kept about {term.label} of type {term.data_type}",
            found=term.data_type,
            expected=SUPPORTED,
            hint="index a field of a struct, or an expression of a supported type; declare CHAR, "
            "whose padding changes what is compared, as VARCHAR or STRING",
        )
    return term


def column_at(names: Iterable[str]) -> Column:
    """The column or field with these names, from the outermost one on."""
    return sql.col(".".join("`" + name.replace("`", "``") + "`" for name in names))


def _names(session: SparkSession, name: str) -> tuple[str, ...]:
    names = tuple(name.split("."))
    if "`" not in name and all(names):
        return names
    jvm = jvm_of(session)
    parser = jvm.org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
    try:
        return tuple(parser.parseAttributeName(name).mkString("\n").split("\n"))
    except (Py4JJavaError, PySparkException) as error:
        raise IndexNotPossible(
            f"{name} is no name of a column", found=name, hint="put odd names in backticks"
        ) from error
