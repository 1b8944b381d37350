"""Columns that the columns of a snapshot come from, through joins, transformers and queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.lineage import Node, lineage

from snaploom.engine.fold import DATA
from snaploom.models.datasource import DataSource
from snaploom.models.outputdataset import DataFormat, OutputDataset
from snaploom.output import layout
from snaploom.plan.bundle import Bundle
from snaploom.plan.tree import JoinNode, JoinTree
from snaploom.policy.sqlconditions import parse
from snaploom.policy.sqltext import SqlRefused, scan
from snaploom.run.runevents import ReadColumns, WovenColumns
from snaploom.sources.declared import DatasetName, place_dataset
from snaploom.sources.readers import origins
from snaploom.sources.registry import declared
from snaploom.types.schemas import Struct, parse_schema, split_path, struct_at

# Datasets that outputs publish, under the names that other tools use for them.


def output_dataset(output: OutputDataset) -> DatasetName:
    """The dataset of an output: the folder of its files, or the place of its table."""
    folder = output.spec.output_folder
    is_table = folder.data_format is DataFormat.ICEBERG
    return place_dataset(folder.folder_uri + ("" if is_table else layout.DATA))


# Traces columns of a query to columns of its sources; leaves out those in doubt.


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


# Origins of the columns of a snapshot: by declared joins, transformers and queries.


@dataclass(frozen=True)
class InputColumn:
    """A column of a dataset that is read."""

    dataset: DatasetName
    column: str
    is_same: bool = True
    """Whether its values are taken as they are."""
    changes: str = ""
    """Changes of a key before it is compared; empty for none."""


Found = Mapping[str, tuple[InputColumn, ...]]
"""Origins of the columns of a source, by name in lower case."""


@dataclass(frozen=True)
class ColumnLineage:
    """The source columns of each column of a snapshot."""

    columns: Mapping[str, tuple[InputColumn, ...]]
    """By path in the output, such as `origin.data.name`."""
    joined_by: tuple[InputColumn, ...]
    """Columns of the keys of joins."""
    grouped_by: tuple[InputColumn, ...]
    """Columns by which sources are grouped."""


def column_lineage(bundle: Bundle, tree: JoinTree, woven: WovenColumns) -> ColumnLineage:
    """Origins of the columns of a snapshot.

    Args:
        bundle: the output with everything that it refers to.
        tree: its join tree.
        woven: the snapshot's columns, and those that it was woven from.
    """
    nodes = [node for node in tree.nodes if node.field_name in woven.read]
    found = {
        node.number: source_columns(bundle, node.source, woven.read[node.field_name])
        for node in nodes
    }
    columns: dict[str, tuple[InputColumn, ...]] = {}
    schema = parse_schema(woven.schema, "")
    for node in nodes:
        path = (*tree.path(node.number), DATA)
        names = (field.name for field in struct_at(schema, path).fields)
        for name in names:
            columns[".".join((*path, name))] = found[node.number].get(name.casefold(), ())
    joined = [column for node in nodes for column in _keys(bundle, tree, node, found)]
    grouped = [
        column
        for node in nodes
        for name in node.group_by
        for column in found[node.number].get(_top(name), ())
    ]
    return ColumnLineage(columns, tuple(dict.fromkeys(joined)), tuple(dict.fromkeys(grouped)))


def source_columns(bundle: Bundle, name: str, read: ReadColumns) -> Found:
    """Origins of the columns of a source.

    Args:
        bundle: holds the source and what it reads.
        name: of the source.
        read: its columns before its transformers.
    """
    source = bundle.source(name)
    used = source.spec.variant.field_transformers
    transformers = [item for one in used for item in bundle.field_transformers if item.name == one]
    below = _below(bundle, source, read)
    return {
        column.casefold(): tuple(
            replace(each, is_same=each.is_same and origin.is_same)
            for each in below.get(origin.column.casefold(), ())
        )
        for column, origin in origins(_schema(read), transformers, read.time).items()
    }


def _below(bundle: Bundle, source: DataSource, read: ReadColumns) -> Found:
    query = declared(source).query(read.time)
    if query is not None:
        return _of_query(bundle, query.text, query.sources, read)
    places = declared(source).datasets
    return {
        field.name.casefold(): tuple(InputColumn(place, field.name) for place in places)
        for field in _schema(read).fields
    }


def _of_query(bundle: Bundle, query: str, aliases: Mapping[str, str], read: ReadColumns) -> Found:
    found = {
        alias: source_columns(bundle, name, read.below[alias])
        for alias, name in aliases.items()
        if alias in read.below
    }
    return {
        name: tuple(
            replace(each, is_same=each.is_same and column.is_same)
            for column in made_of
            for each in found[column.alias].get(column.column.casefold(), ())
        )
        for name, made_of in query_columns(query, found).items()
    }


def _keys(
    bundle: Bundle, tree: JoinTree, node: JoinNode, found: Mapping[int, Found]
) -> Iterator[InputColumn]:
    """Columns of the key by which a source is joined to its parent, of both."""
    if not node.relationship:
        return
    relationship = bundle.relationship(node.relationship)
    for side in (tree.nodes[node.parent_number], node):
        for component in relationship.spec.join_key_of(side.source) or ():
            steps = ", ".join(component.normalize or ())
            for field in component.fields_:
                columns = found[side.number].get(_top(field.field_name), ())
                yield from (replace(one, changes=steps) for one in columns)


def _top(path: str) -> str:
    """The column that a path into structs begins with, in lower case."""
    parts = split_path(path)
    return (parts[0] if parts else path).casefold()


def _schema(read: ReadColumns) -> Struct:
    return parse_schema(read.schema, "")
