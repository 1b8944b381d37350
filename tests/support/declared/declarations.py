"""Declarations for tests of loading and validation: sound ones, to be spoilt in one place."""

import copy
from typing import Any

from snaploom.models.common import Resource
from snaploom.models.kinds import KIND_BY_NAME
from snaploom.validate.validator import validate

API = "snaploom.io/v1alpha1"
Raw = dict[str, Any]


def document(kind: str, name: str, spec: Raw) -> Raw:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def files(name: str, **changes: Any) -> Raw:
    spec = {
        "format": "parquet",
        "sourceUriGlobs": [f"/data/{name}/*/*.parquet"],
        "snapshot": {"fromFieldValue": {"fieldName": "day", "timeFormat": "ISO8601_DATE"}},
    }
    return document("DataSource", name, {"hdfsLike": spec | changes})


def simple(name: str, query: str, source: str = "customer", **changes: Any) -> Raw:
    spec = {"dataSource": source, "alias": "c", "dataQuery": query}
    return document("DataSource", name, {"simpleVirtual": spec | changes})


def complex_(name: str, query: str, *sources: str, **changes: Any) -> Raw:
    spec = {
        "dataSources": [{"dataSource": s, "alias": f"c{i}"} for i, s in enumerate(sources)],
        "snapshotQuery": "SELECT a AS interval_start, b AS interval_end FROM c0",
        "dataQuery": query,
    }
    return document("DataSource", name, {"complexVirtual": spec | changes})


def key(*fields: str, query: str | None = None, cast: Raw | None = None) -> Raw:
    component: Raw = {"fields": [{"fieldName": f, "dataType": {"string": {}}} for f in fields]}
    if query is not None:
        component["query"] = query
    if cast is not None:
        component["castDataType"] = cast
    return component


def relationship(name: str, *representations: tuple[list[str], list[Raw]]) -> Raw:
    return document(
        "DataRelationship",
        name,
        {"representations": [{"dataSources": s, "joinKey": k} for s, k in representations]},
    )


def output(name: str = "wide", **changes: Any) -> Raw:
    """An output of `customer` with `address`; dotted changes go below `spec`."""
    start = {"year": 2020, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0, "nano": 0}
    interval = {
        "intervalStartDate": start | {"timezone": "UTC"},
        "intervalLength": {"day": 1},
    }
    result = document(
        "OutputDataset",
        name,
        {
            "dataModel": {
                "rootDataSource": {
                    "dataSource": "customer",
                    "snapshotFilter": {"fromInterval": interval},
                },
                "otherDataSources": [{"dataSource": "address", "fieldName": "address"}],
                "dataRelationships": [{"name": "customer-id"}],
            },
            "outputFolder": {
                "folderUri": f"/out/{name}/",
                "snapshotFormat": {"hivePartitioned": {}},
            },
        },
    )
    for path, value in changes.items():
        put(result["spec"], path, value)
    return result


def put(raw: Any, path: str, value: Any) -> None:
    """Set the value at a path of keys and list positions, separated by dots."""
    *above, last = path.split(".")
    for step in above:
        raw = raw[int(step)] if isinstance(raw, list) else raw.setdefault(step, {})
    if isinstance(raw, list):
        raw[int(last)] = value
    else:
        raw[last] = value


def spoilt(raw: Raw, path: str, value: Any) -> Raw:
    """A copy with another value at a path."""
    result = copy.deepcopy(raw)
    put(result, path, value)
    return result


def model() -> list[Raw]:
    """A sound set: two sources, a relationship, an output."""
    return [
        files("customer"),
        files("address"),
        relationship("customer-id", (["customer", "address"], [key("customer_id")])),
        output(),
    ]


def parsed(raws: list[Raw]) -> list[Resource]:
    return [KIND_BY_NAME[raw["kind"]].model.parse(raw) for raw in raws]


def found(raws: list[Raw]) -> list[tuple[str, str, str]]:
    """Code, resource and path of every finding."""
    return [(f.code, f.resource, f.path) for f in validate(parsed(raws))]
