"""Small data models for planning tests: written in one line each, or random."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from snaploom.models.datarelationship import DataRelationship
from snaploom.models.datasource import DataSource
from snaploom.models.outputdataset import DataModel, OutputDataset
from snaploom.plan.bundle import Bundle
from snaploom.plan.tree import JoinGraph, join_graph

START = {
    "year": 2020, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0, "nano": 0,
    "timezone": "UTC",
}  # fmt: skip


@dataclass
class Relation:
    """A relationship over sources; `keys` overrides the key field (the relationship's name)."""

    sources: tuple[str, ...]
    anti_priority: int = 1
    exclusions: list[tuple[str, ...]] = field(default_factory=list)
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass
class Model:
    """A data model that tests can change; the field name of a source is its name."""

    root: str
    relations: dict[str, Relation]
    others: list[str]
    group_by: dict[str, tuple[str, ...]] = field(default_factory=dict)
    modes: dict[str, str] = field(default_factory=dict)
    max_depth: int = 14

    def key(self, relation: str, source: str) -> tuple[str, ...]:
        return self.relations[relation].keys.get(source, (relation,))

    def data_model(self) -> DataModel:
        filter_: dict[str, Any] = {
            "fromInterval": {"intervalStartDate": START, "intervalLength": {"day": 1}}
        }
        return DataModel.parse(
            {
                "rootDataSource": {"dataSource": self.root, "snapshotFilter": filter_},
                "otherDataSources": [self._other(name) for name in self.others],
                "dataRelationships": [
                    {
                        "name": name,
                        "antiPriority": relation.anti_priority,
                        "exclusions": [{"dataSourceSet": list(x)} for x in relation.exclusions],
                    }
                    for name, relation in self.relations.items()
                ],
                "maxDepth": self.max_depth,
            }
        )

    def relationships(self) -> list[DataRelationship]:
        return [self._relationship(name) for name in self.relations]

    def graph(self) -> JoinGraph:
        return join_graph(self.data_model(), self.relationships())

    def _other(self, name: str) -> dict[str, Any]:
        return {
            "dataSource": name,
            "fieldName": name,
            "pathMissingMode": self.modes.get(name, "ERROR"),
            "transformations": {"groupBy": {"fieldNames": list(self.group_by.get(name, ()))}},
        }

    def _relationship(self, name: str) -> DataRelationship:
        by_key: dict[tuple[str, ...], list[str]] = {}
        for source in self.relations[name].sources:
            by_key.setdefault(self.key(name, source), []).append(source)
        width = max(len(key) for key in by_key)
        representations: list[Any] = [
            {"dataSources": sources, "joinKey": _join_key(key, width)}
            for key, sources in by_key.items()
        ]
        return DataRelationship.parse(
            {
                "apiVersion": "snaploom.io/v1alpha1",
                "kind": "DataRelationship",
                "metadata": {"name": name},
                "spec": {"representations": representations},
            }
        )


def _join_key(key: Sequence[str], width: int) -> list[dict[str, Any]]:
    fields = [{"fieldName": name, "dataType": {"string": {}}} for name in key]
    rest = fields[width - 1 :]
    last: dict[str, Any] = {"fields": rest}
    if len(rest) > 1:
        last["query"] = "concat(" + ", ".join(str(part["fieldName"]) for part in rest) + ")"
    padding: list[dict[str, Any]] = [{"fields": [fields[0]]}] * (width - len(fields))
    if padding:
        return [{"fields": [part]} for part in fields] + padding
    return [{"fields": [part]} for part in fields[: width - 1]] + [last]


def model(
    root: str,
    relations: Mapping[str, Relation],
    group_by: Mapping[str, tuple[str, ...]] | None = None,
    modes: Mapping[str, str] | None = None,
    unlisted: Sequence[str] = (),
    max_depth: int = 14,
) -> Model:
    """A model that lists every source of its relations, but for `unlisted`."""
    names = {source for relation in relations.values() for source in relation.sources}
    others = sorted(names - {root} - set(unlisted))
    return Model(root, dict(relations), others, dict(group_by or {}), dict(modes or {}), max_depth)


def customer_model() -> Model:
    """Customers with addresses, contacts and groups: rule W23 with two grouped sources."""
    return model(
        "customer",
        {
            "customer_id": Relation(
                ("customer", "customer_group", "customer_address", "customer_contact")
            ),
            "group_id": Relation(("customer_group", "group_attributes")),
        },
        group_by={"customer_group": ("customer_id",), "customer_contact": ("customer_id",)},
    )


def random_model(random: Random, sources: int = 6, relations: int = 5) -> Model:
    """A small model with grouping, exclusions, unlisted sources and equal priorities."""
    names = [f"s{i}" for i in range(random.randint(2, sources))]
    found: dict[str, Relation] = {}
    for number in range(random.randint(1, relations)):
        members = tuple(random.sample(names, random.randint(1, min(len(names), 4))))
        relation = Relation(members, random.choice((1, 1, 1, 2, 3)))
        if len(members) > 2 and random.random() < 0.4:
            for _ in range(random.randint(1, 2)):
                relation.exclusions.append(tuple(random.sample(members, random.randint(2, 3))))
        found[f"r{number}"] = relation
    unlisted = {name for name in names[1:] if random.random() < 0.12}
    others = [name for name in names[1:] if name not in unlisted]
    random.shuffle(others)
    keys = [*found, "elsewhere"]
    grouped: dict[str, tuple[str, ...]] = {
        name: (random.choice(keys).upper(),) for name in others if random.random() < 0.25
    }
    return Model(names[0], found, others, grouped)


def output_of(declared: Model, **folder: Any) -> OutputDataset:
    """An OutputDataset with this data model, named `out`; `folder` adds to its outputFolder."""
    settings: dict[str, Any] = {
        "folderUri": "/out/",
        "snapshotFormat": {"hivePartitioned": {}},
    }
    return OutputDataset.parse(
        {
            "apiVersion": "snaploom.io/v1alpha1",
            "kind": "OutputDataset",
            "metadata": {"name": "out"},
            "spec": {
                "dataModel": declared.data_model().dump(),
                "outputFolder": settings | folder,
            },
        }
    )


def bundle_of(declared: Model, output: OutputDataset | None = None) -> Bundle:
    """A Bundle with Parquet sources whose snapshots are in a field."""
    names = {source for relation in declared.relations.values() for source in relation.sources}
    return Bundle(
        output_dataset=output or output_of(declared),
        data_sources=tuple(_source(name) for name in sorted({declared.root, *names})),
        data_relationships=tuple(declared.relationships()),
    )


def _source(name: str) -> DataSource:
    return DataSource.parse(
        {
            "apiVersion": "snaploom.io/v1alpha1",
            "kind": "DataSource",
            "metadata": {"name": name},
            "spec": {
                "hdfsLike": {
                    "format": "parquet",
                    "sourceUriGlobs": [f"/data/{name}/*"],
                    "snapshot": {
                        "fromFieldValue": {"fieldName": "at", "timeFormat": "UNIX_SECONDS"}
                    },
                }
            },
        }
    )
