"""References between declarations and to columns, with findings about dead ones."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TypeVar

import networkx as nx

from snaploom.loading.nearmisses import Guesses, listing
from snaploom.models.allowances import Allowances
from snaploom.models.common import DataType, Resource, SchemaField
from snaploom.models.datarelationship import DataRelationship
from snaploom.models.datasource import DataSource
from snaploom.models.fieldtransformer import FieldTransformer, MetadataApplicator
from snaploom.models.findings import Finding, Severity
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.skippingindex import SkippingIndex
from snaploom.policy.verdicts import TextJudge
from snaploom.types.schemas import path_text, split_path

# Reads between declarations: sources that query others, and outputs read as sources.


class ReadGraph:
    """Names with edges to those that each reads."""

    def __init__(self, reads: Mapping[str, Iterable[str]]) -> None:
        """Build the graph.

        `reads` has the names that each name reads; others are not part of the graph.
        """
        self._graph = nx.DiGraph()
        self._graph.add_nodes_from(reads)
        for name, others in reads.items():
            self._graph.add_edges_from((name, other) for other in others if other in reads)

    def reached(self, names: Iterable[str]) -> frozenset[str]:
        """The known ones of some names, and all that they read, directly or through others."""
        known = [name for name in names if name in self._graph]
        return frozenset(chain.from_iterable(nx.bfs_layers(self._graph, known)))

    def in_order(self, name: str) -> tuple[str, ...]:
        """A name and all that it reads, each before those that only it reads."""
        return tuple(nx.dfs_preorder_nodes(self._graph, name))

    @cached_property
    def circles(self) -> tuple[frozenset[str], ...]:
        """The groups in which each reads all others, directly or through others; and itself."""
        return tuple(
            frozenset(group)
            for group in nx.strongly_connected_components(self._graph)
            if len(group) > 1 or any(self._graph.has_edge(one, one) for one in group)
        )

    def circle(self, name: str) -> tuple[str, ...]:
        """The shortest way from a name back to itself, of equally short ones the first by name.

        Nothing where there is none. Circles are never enumerated: there may be any number of them.
        """
        if not any(name in group for group in self.circles):
            return ()
        tree = nx.bfs_tree(self._graph, name, sort_neighbors=sorted)
        last = next(one for one in tree if self._graph.has_edge(one, name))
        return (*nx.shortest_path(tree, name, last), name)


def reads_of(sources: Mapping[str, DataSource]) -> ReadGraph:
    """The graph of sources by name: virtual ones read others."""
    return ReadGraph({name: source.spec.reads for name, source in sources.items()})


# Columns as far as declarations show: those of `schemaFields`, and captures of paths.


@dataclass(frozen=True, slots=True)
class DeclaredColumns:
    """The columns of a source, and none besides."""

    names: tuple[str, ...]
    """In the order of the declaration."""
    types: Mapping[str, DataType | None]
    """By name in lower case; None where the type is not known."""

    def missing_part(self, parts: Sequence[str]) -> str | None:
        """The first name of a path that no column or field has; None when all are there.

        Several names together may be one column whose own name has points.
        """
        for count in range(1, len(parts) + 1):
            column = ".".join(parts[:count]).lower()
            if column in self.types:
                return _missing_inside(self.types[column], parts[count:])
        return parts[0]

    def type_of(self, path: str) -> DataType | None:
        """The type of a column or a field of structs; None where it is not known."""
        parts = split_path(path) or ()
        for count in range(1, len(parts) + 1):
            found = self.types.get(".".join(parts[:count]).lower())
            rest = path_text(parts[count:])
            if found is not None and rest and found.struct is not None:
                return columns_of(found.struct.fields_).type_of(rest)
            if found is not None:
                return None if rest else found
        return None

    def missing_of(self, path: str) -> str | None:
        """As `missing_part`, of a path as text; None as well where it is no path."""
        parts = split_path(path)
        return None if parts is None else self.missing_part(parts)


def columns_of(fields: Sequence[SchemaField], captures: Iterable[str] = ()) -> DeclaredColumns:
    """The columns of a schema, and the captures of the path."""
    types: dict[str, DataType | None] = {field.name.lower(): field.data_type for field in fields}
    captured = tuple(captures)
    return DeclaredColumns(
        (*(field.name for field in fields), *captured),
        {name.lower(): None for name in captured} | types,
    )


def _missing_inside(data_type: DataType | None, parts: Sequence[str]) -> str | None:
    if not parts or data_type is None or data_type.map_ is not None:
        return None
    if data_type.array is not None:
        return _missing_inside(data_type.array.element_type, parts)
    if data_type.struct is None:
        return parts[0]
    return columns_of(data_type.struct.fields_).missing_part(parts)


# The resources of one namespace by kind and name, and the severity of a missing reference.

_Kind = TypeVar("_Kind", bound=Resource)

NamesOfKind = Callable[[str], Iterable[str]]
"""From a kind to names of its resources in one namespace."""


ShapedColumns = Callable[[DataSource, Mapping[str, FieldTransformer]], DeclaredColumns | None]
"""From a source, and transformers by name, to the columns that it may give to an output."""


def no_names(kind: str) -> tuple[str, ...]:
    """Return resolution without any resources but those that were given."""
    return ()


@dataclass(frozen=True)
class Scope:
    """The resources of a namespace that others can refer to."""

    sources: Mapping[str, DataSource]
    relationships: Mapping[str, DataRelationship]
    applicators: Mapping[str, MetadataApplicator]
    transformers: Mapping[str, FieldTransformer]
    outputs: Mapping[str, OutputDataset]
    indexes: Mapping[str, SkippingIndex]
    broken: frozenset[str]
    """Identities of resources that exist but could not be read: no reference to them is missing."""
    missing_reference: Severity
    """Severity of a missing reference: an error on a laptop, a warning at admission."""
    allow: Allowances
    """Entries that declarations may use beyond the built-in lists."""
    judge_text: TextJudge
    shaped_columns: ShapedColumns
    """Columns of sources; kinds of sources, which know them, are above a scope."""
    others: NamesOfKind = no_names
    """Names of resources, by kind, that are there and were not given: for guesses."""
    guesses: Guesses = field(default_factory=Guesses)
    """Existing names that a missing name may be a misspelling of."""

    @cached_property
    def reads(self) -> ReadGraph:
        """Return the graph of sources that read each other."""
        return reads_of(self.sources)

    def columns_of(self, name: str) -> DeclaredColumns | None:
        """The columns that a source may give to an output; None where that is not known."""
        source = self.sources.get(name)
        return None if source is None else self.shaped_columns(source, self.transformers)

    def missing(self, kind: str, name: str, owner: Resource, path: str) -> tuple[Finding, ...]:
        """A finding when a reference leads to nothing."""
        known = self._names(kind)
        if name in known or f"{kind}/{name}" in self.broken:
            return ()
        there = {*known, *self.others(kind)}
        return (
            owner.finding(
                "SL130",
                path,
                f"there is no {kind} of this name",
                found=name,
                expected=f"the name of a {kind}",
                hint=self.guesses.did_you_mean(name, there) or f"add `{kind}/{name}`",
                severity=self.missing_reference,
            ),
        )

    def _names(self, kind: str) -> Mapping[str, Resource]:
        by_kind: dict[str, Mapping[str, Resource]] = {
            "DataSource": self.sources,
            "DataRelationship": self.relationships,
            "MetadataApplicator": self.applicators,
            "FieldTransformer": self.transformers,
            "OutputDataset": self.outputs,
        }
        return by_kind[kind]


def scope_of(
    resources: Iterable[Resource],
    broken: frozenset[str],
    missing_reference: Severity,
    allow: Allowances,
    judge_text: TextJudge,
    shaped_columns: ShapedColumns,
    others: NamesOfKind = no_names,
) -> Scope:
    """The scope of resources of one namespace; of two with the same identity the first counts."""
    listed = tuple(resources)
    return Scope(
        _by_name(listed, DataSource),
        _by_name(listed, DataRelationship),
        _by_name(listed, MetadataApplicator),
        _by_name(listed, FieldTransformer),
        _by_name(listed, OutputDataset),
        _by_name(listed, SkippingIndex),
        broken,
        missing_reference,
        allow,
        judge_text,
        shaped_columns,
        others,
    )


def _by_name(resources: tuple[Resource, ...], kind: type[_Kind]) -> dict[str, _Kind]:
    result: dict[str, _Kind] = {}
    for resource in resources:
        if isinstance(resource, kind):
            result.setdefault(resource.name, resource)
    return result


# References to columns of sources whose schema is declared: the column must be in it.

DATA = "data"
"""Field of the output, at every level, that holds the columns of the source itself."""


def key_column_findings(relationship: DataRelationship, scope: Scope) -> Iterator[Finding]:
    """A finding for every field of a key that one of its sources does not declare."""
    for index, representation in enumerate(relationship.spec.representations):
        fields = [
            (f"spec.representations[{index}].joinKey[{place}].fields[{number}].fieldName", part)
            for place, component in enumerate(representation.join_key)
            for number, part in enumerate(component.fields_)
        ]
        for name in representation.data_sources:
            for path, part in fields:
                yield from column_findings(name, part.field_name, relationship, path, scope)


def output_column_findings(output: OutputDataset, scope: Scope) -> Iterator[Finding]:
    """A finding for every column of keys, groups, as-of joins and windows that its source lacks."""
    model = output.spec.data_model
    root = model.root_data_source
    for place, column in enumerate(root.root_key):
        path = f"spec.dataModel.rootDataSource.rootKey[{place}]"
        yield from column_findings(root.data_source, column, output, path, scope)
    for index, other in enumerate(model.other_data_sources):
        at = f"spec.dataModel.otherDataSources[{index}].transformations.groupBy.fieldNames"
        for place, column in enumerate(other.group_by):
            yield from column_findings(other.data_source, column, output, f"{at}[{place}]", scope)
        if other.timed is None:
            continue
        for name, column in other.timed.child_fields.items():
            path = f"spec.dataModel.otherDataSources[{index}].{other.timed.place}.{name}"
            yield from column_findings(other.data_source, column, output, path, scope)


def undeclared_in_output(
    output: OutputDataset, parts: Sequence[str], scope: Scope
) -> tuple[str, str] | None:
    """Faults of a path of the output: a correction and a hint, None where nothing is known.

    `parts` are the names of the path: fields of sources, `data`, and the column.
    """
    model = output.spec.data_model
    by_field = {one.field_name.casefold(): one for one in model.other_data_sources}
    name, rest, windows = model.root_data_source.data_source, list(parts), None
    while rest and rest[0].casefold() in by_field:
        other = by_field[rest.pop(0).casefold()]
        name, windows = other.data_source, other.windows
    if rest and rest[0].casefold() != DATA:
        fields = ".".join(parts[: len(parts) - len(rest)])
        return f"{DATA}, or the field of a source", f"write {fields}.{DATA}.{'.'.join(rest)}"
    if windows is not None and len(rest) > 1:
        names = tuple(one.name for one in windows.aggregates)
        if rest[1].casefold() in map(str.casefold, names):
            return None
        guess = scope.guesses.did_you_mean(rest[1], names)
        return f"windows of DataSource/{name}: {listing(names)}", guess
    columns = scope.columns_of(name)
    if columns is None or len(rest) < 2 or columns.missing_part(rest[1:]) is None:
        return None
    guess = scope.guesses.did_you_mean(rest[1], columns.names)
    return f"columns that DataSource/{name} declares: {listing(columns.names)}", guess


def column_findings(
    name: str, column: str, owner: Resource, path: str, scope: Scope
) -> Iterable[Finding]:
    """A finding about a column that a source, by its name, does not declare."""
    source, columns = scope.sources.get(name), scope.columns_of(name)
    if source is not None and columns is not None and columns.missing_of(column) is not None:
        yield undeclared_column(source, columns, column, owner, path, scope)


def undeclared_column(
    source: DataSource, columns: DeclaredColumns, name: str, owner: Resource, path: str,
    scope: Scope,
) -> Finding:  # fmt: skip
    """The finding about a column that a source does not declare."""
    return owner.finding(
        "SL158",
        path,
        f"{source.identity} declares no such column",
        found=name,
        expected=f"columns of schemaFields and captures of the path: {listing(columns.names)}",
        hint=scope.guesses.did_you_mean(name, columns.names),
    )
