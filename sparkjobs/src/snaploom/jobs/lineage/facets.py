"""Facets of datasets and runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from openlineage.client.facet_v2 import (
    DatasetFacet,
    RunFacet,
    column_lineage_dataset,
    dataset_version_dataset,
    error_message_run,
    schema_dataset,
)

from snaploom.jobs.lineage.columnlineage import ColumnLineage, InputColumn
from snaploom.planning.schemas import Array, Field, Map, Struct, Type, describe
from snaploom.version import VERSION

PRODUCER = f"urn:snaploom:{VERSION}"
"""The producer of the events."""


def error_facet(message: str) -> RunFacet:
    """Why a run failed."""
    return error_message_run.ErrorMessageRunFacet(message, "PYTHON", producer=PRODUCER)


def version_facet(version: str) -> DatasetFacet:
    """Which version of a dataset is meant."""
    return dataset_version_dataset.DatasetVersionDatasetFacet(version, producer=PRODUCER)


def schema_facet(schema: Struct) -> DatasetFacet:
    """The columns of a dataset."""
    return schema_dataset.SchemaDatasetFacet(_fields(schema.fields), producer=PRODUCER)


def _fields(fields: Iterable[Field]) -> list[schema_dataset.SchemaDatasetFacetFields]:
    return [
        schema_dataset.SchemaDatasetFacetFields(
            field.name, type=_type_name(field.type), fields=_inside(field.type)
        )
        for field in fields
    ]


def _type_name(type_: Type) -> str:
    """The name of a type; fields of a struct have their own facets."""
    match type_:
        case Struct():
            return "struct"
        case Array():
            return "array"
        case Map():
            return "map"
    return describe(type_)


def _inside(type_: Type) -> list[schema_dataset.SchemaDatasetFacetFields]:
    """Fields of a struct; parts of an array and of a map, by the names that the rules give them."""
    match type_:
        case Struct(fields):
            return _fields(fields)
        case Array(element):
            return _fields([Field("_element", element, True, "{}")])
        case Map(key, value):
            return _fields([Field("key", key, False, "{}"), Field("value", value, True, "{}")])
    return []


def column_facet(lineage: ColumnLineage) -> DatasetFacet:
    """Which columns the columns of a dataset come from.

    A column of the top has those of everything inside it, too: catalogues such as Marquez know
    columns of the top only, and drop what stands at a path.
    """
    indirect = [
        *(_indirect(column, "JOIN") for column in lineage.joined_by),
        *(_indirect(column, "GROUP_BY") for column in lineage.grouped_by),
    ]
    return column_lineage_dataset.ColumnLineageDatasetFacet(
        {
            path: column_lineage_dataset.Fields([_direct(column) for column in made_of])
            for path, made_of in (_top_columns(lineage) | dict(lineage.columns)).items()
            if made_of
        },
        indirect,
        producer=PRODUCER,
    )


def _top_columns(lineage: ColumnLineage) -> dict[str, tuple[InputColumn, ...]]:
    found: dict[str, dict[InputColumn, None]] = {}
    for path, made_of in lineage.columns.items():
        inside = found.setdefault(path.partition(".")[0], {})
        inside.update((replace(column, is_same=False), None) for column in made_of)
    return {name: tuple(columns) for name, columns in found.items()}


def _direct(column: InputColumn) -> column_lineage_dataset.InputField:
    return _input_field(column, "DIRECT", "IDENTITY" if column.is_same else "TRANSFORMATION")


def _indirect(column: InputColumn, subtype: str) -> column_lineage_dataset.InputField:
    return _input_field(column, "INDIRECT", subtype)


def _input_field(
    column: InputColumn, type_: str, subtype: str
) -> column_lineage_dataset.InputField:
    how = column_lineage_dataset.Transformation(type_, subtype)
    place = column.dataset
    return column_lineage_dataset.InputField(place.namespace, place.name, column.column, [how])
