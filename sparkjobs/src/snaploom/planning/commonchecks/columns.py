"""References to columns of sources whose schema is declared: the column must be in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from snaploom.loading.nearmisses import listing
from snaploom.models.codes import make_finding
from snaploom.models.datarelationship import DataRelationship
from snaploom.models.datasource import DataSource
from snaploom.models.finding import Finding
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.resource import Resource
from snaploom.planning.commonchecks.scope import Scope
from snaploom.planning.declaredcolumns import DeclaredColumns

DATA = "data"
"""Field of the output, at every level, that holds the columns of the source itself."""


def key_column_findings(relationship: DataRelationship, scope: Scope) -> Iterator[Finding]:
    """A finding for every field of a key that one of its sources does not declare."""
    for index, representation in enumerate(relationship.spec.representations):
        fields = [
            (f"spec.representations[{index}].joinKey[{place}].fields[{number}].fieldName", field)
            for place, component in enumerate(representation.join_key)
            for number, field in enumerate(component.fields_)
        ]
        for name in representation.data_sources:
            for path, field in fields:
                yield from _of_source(name, field.field_name, relationship, path, scope)


def output_column_findings(output: OutputDataset, scope: Scope) -> Iterator[Finding]:
    """A finding for every column of `rootKey` and `groupBy` that its source does not declare."""
    model = output.spec.data_model
    root = model.root_data_source
    for place, column in enumerate(root.root_key):
        path = f"spec.dataModel.rootDataSource.rootKey[{place}]"
        yield from _of_source(root.data_source, column, output, path, scope)
    for index, other in enumerate(model.other_data_sources):
        at = f"spec.dataModel.otherDataSources[{index}].transformations.groupBy.fieldNames"
        for place, column in enumerate(other.group_by):
            yield from _of_source(other.data_source, column, output, f"{at}[{place}]", scope)


def undeclared_in_output(
    output: OutputDataset, parts: Sequence[str], scope: Scope
) -> tuple[str, str] | None:
    """Faults of a path of the output, by the declarations of its sources.

    `parts` are the names of the path: fields of sources, `data`, and the column.

    Returns:
        What would be right, and a hint; None where nothing is known to be wrong.
    """
    model = output.spec.data_model
    by_field = {one.field_name.casefold(): one.data_source for one in model.other_data_sources}
    name, rest = model.root_data_source.data_source, list(parts)
    while rest and rest[0].casefold() in by_field:
        name = by_field[rest.pop(0).casefold()]
    if rest and rest[0].casefold() != DATA:
        fields = ".".join(parts[: len(parts) - len(rest)])
        return f"{DATA}, or the field of a source", f"write {fields}.{DATA}.{'.'.join(rest)}"
    columns = scope.columns_of(name)
    if columns is None or len(rest) < 2 or columns.missing_part(rest[1:]) is None:
        return None
    guess = scope.guesses.did_you_mean(rest[1], columns.names)
    return f"columns that DataSource/{name} declares: {listing(columns.names)}", guess


def _of_source(
    name: str, column: str, owner: Resource, path: str, scope: Scope
) -> Iterable[Finding]:
    source, columns = scope.sources.get(name), scope.columns_of(name)
    if source is not None and columns is not None and columns.missing_of(column) is not None:
        yield undeclared_column(source, columns, column, owner, path, scope)


def undeclared_column(
    source: DataSource, columns: DeclaredColumns, name: str, owner: Resource, path: str,
    scope: Scope,
) -> Finding:  # fmt: skip
    """The finding about a column that a source does not declare."""
    return make_finding(
        "SL158",
        f"{source.identity} declares no such column",
        resource=owner.identity,
        path=path,
        found=name,
        expected=f"columns of schemaFields and captures of the path: {listing(columns.names)}",
        hint=scope.guesses.did_you_mean(name, columns.names),
    )
