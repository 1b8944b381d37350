"""Traces columns of a query to columns of its sources; leaves out those in doubt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.lineage import Node, lineage

from snaploom.planning.sqlgate.bounded import parse
from snaploom.planning.sqlgate.lexer import SqlRefused, scan


@dataclass(frozen=True)
class QueryColumn:
    """A column that a query reads."""

    alias: str
    column: str
    is_same: bool
    """Whether its values are taken as they are."""


def query_columns(
    query: str, tables: Mapping[str, Iterable[str]]
) -> Mapping[str, tuple[QueryColumn, ...]]:
    """The source columns of each column of a query, by its name in lower case.

    Args:
        query: Spark SQL; validated.
        tables: names of columns, by alias.
    """
    names = {
        alias.casefold(): (alias, {column.casefold(): column for column in columns})
        for alias, columns in tables.items()
    }
    schema = {alias: dict.fromkeys(columns, "string") for alias, (_, columns) in names.items()}
    try:
        parsed = parse(scan(query))
        found = lineage(None, parsed, schema=schema, dialect="spark")
    except (
        SqlglotError,
        SqlRefused,
        KeyError,
        ValueError,
        RecursionError,
    ):  # what cannot be traced is left out
        return {}
    assert isinstance(found, dict)  # as without the name of a column
    return {
        name.casefold(): tuple(dict.fromkeys(_leaves(node, names, is_same=True)))
        for name, node in found.items()
    }


def _leaves(
    node: Node, names: Mapping[str, tuple[str, Mapping[str, str]]], *, is_same: bool
) -> Iterator[QueryColumn]:
    if isinstance(node.source, exp.Table):
        alias, columns = names.get(node.source.name.casefold(), ("", {}))
        column = columns.get(node.name.rpartition(".")[2].strip('`"').casefold())
        if column is not None:
            yield QueryColumn(alias, column, is_same)
        return
    is_taken = isinstance(node.expression.unalias(), exp.Column)
    for below in node.downstream:
        yield from _leaves(below, names, is_same=is_same and is_taken)
