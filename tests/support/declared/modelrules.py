"""One table of right and wrong parts of declarations, for every judge of them.

The parser judges them, the generated schema with the rules as a library evaluates them, and the
API server itself, inside an object of the kind that they belong to.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import cel
import yaml
from jsonschema import Draft202012Validator

from snaploom.models import (
    asof,
    common,
    datarelationship,
    datasource,
    fieldtransformer,
    outputdataset,
    run,
    skippingindex,
    windows,
)
from snaploom.models import fieldtransformer as metadataapplicator
from snaploom.models import outputdataset as outputfolder
from snaploom.models import run as podtemplate
from snaploom.models.base import ApiModel
from snaploom.models.schemas import cel_name


def faults(schema: dict[str, Any], data: Any) -> list[str]:
    """Everything that is wrong with the data, in words; empty when it would be stored."""
    found = [error.message for error in Draft202012Validator(strict(schema)).iter_errors(data)]
    return found or list(_broken(schema, data))  # rules are judged on data of the right form only


def strict(schema: Any) -> Any:
    """The schema with pruning as an error, so that misspelt keys of test data are seen."""
    if isinstance(schema, list):
        return [strict(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: strict(value) for key, value in schema.items()}
    preserved = schema.get("x-kubernetes-preserve-unknown-fields", False)
    if schema.get("type") == "object" and "additionalProperties" not in schema and not preserved:
        result["additionalProperties"] = False
    return result


def _broken(schema: dict[str, Any], data: Any) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations", ()):
        if cel.evaluate(rule["rule"], {"self": escaped(data)}) is not True:
            yield rule["message"]
    yield from _repeated(schema, data)
    for child, value in _children(schema, data):
        yield from _broken(child, value)


def _repeated(schema: dict[str, Any], data: Any) -> Iterator[str]:
    match schema.get("x-kubernetes-list-type"):
        case "set":
            keys = data
        case "map":
            names = schema["x-kubernetes-list-map-keys"]
            keys = [tuple(member[name] for name in names) for member in data]
        case _:
            return
    if len(set(keys)) < len(keys):
        yield "a member of a set or map is repeated"


def _children(schema: dict[str, Any], data: Any) -> Iterator[tuple[dict[str, Any], Any]]:
    if isinstance(data, list):
        yield from ((schema["items"], member) for member in data)
    elif isinstance(data, dict) and "properties" in schema:
        yield from ((schema["properties"][name], value) for name, value in data.items())


def escaped(data: Any) -> Any:
    if isinstance(data, list):
        return [escaped(member) for member in data]
    if isinstance(data, dict):
        return {cel_name(name): escaped(value) for name, value in data.items()}
    return data


Raw = dict[str, Any]

JDBC = {
    "driver": "POSTGRESQL", "host": "db", "database": "shop", "tableReference": "t",
    "credentials": {"fromSecret": {"name": "db"}}, "snapshot": {"fromReadTime": {}},
}  # fmt: skip
LONG = {"long": {}}
FOLDER = {"folderUri": "/out/", "snapshotFormat": {"hivePartitioned": {}}}
INDEX = {
    "target": {"path": {"uri": "/data", "format": "parquet"}},
    "indexes": [{"type": "MIN_MAX", "column": "a"}],
    "store": {"parquet": {"location": "/index"}},
}
CRON = {"schedule": "0 0 * * *", "startDate": "2020-01-01T00:00:00Z", "length": {"year": 1}}
SELECTORS = [{"metadata": {"k": "v"}}]

BEHIND_TEXTS = (
    (common.DecimalType, {"scale": 11}),
    (common.TimeOffset, {"days": 1}),
    (common.LocalDateTime, {"year": 2021}),
    (common.LocalDateTime, {"year": 1900}),
    (asof.AsOf, {"tolerance": "P7D", "numberTolerance": 7}),
    (windows.WindowAggregate, {"over": "1500ns"}),
    (asof.ChildSnapshot, {"timeBefore": "1d"}),
    (asof.ChildSnapshot, {"preference": "OLDEST"}),
    (asof.ChildSnapshot, {"history": {"day": 1, "hour": 12}}),
    (asof.ChildSnapshot, {"history": "1001d"}),
)
"""Faults that the API server cannot see where a text may stand instead (decision 0057): the parser,
and so the webhook and every job, refuses them."""
ONLY_WHERE_IT_STANDS = ((common.LocalDateTime, {"month": 4, "day": 31}),)
"""Faults that the schema refuses at the place of the model, and not of the model by itself."""

_MODULES = {
    module.__name__.rpartition(".")[2]: module
    for module in (
        asof, common, datarelationship, datasource, fieldtransformer, outputdataset, run,
        skippingindex, windows,
    )
}  # fmt: skip


def _rules() -> Iterator[tuple[type[ApiModel], Raw, list[Raw]]]:
    for rule in yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8")):
        module, _, name = rule["model"].partition(".")
        yield getattr(_MODULES[module], name), rule["right"], rule["wrong"]


RULES = list(_rules())
"""A model, a right part of a declaration, and ways in which it can be wrong (None takes away)."""


def _source(part: str, value: Raw) -> tuple[str, Raw]:
    return "DataSource", {part: value}


def _files(**parts: Any) -> tuple[str, Raw]:
    files = {"format": "parquet", "sourceUriGlobs": ["/a"], "snapshot": {"fromReadTime": {}}}
    return _source("hdfsLike", files | parts)


def _key(component: Raw) -> tuple[str, Raw]:
    representation = {"dataSources": ["a"], "joinKey": [component]}
    return "DataRelationship", {"representations": [representation]}


def _transformer(transformer: Raw) -> tuple[str, Raw]:
    return "FieldTransformer", {"transformers": [transformer]}


def _cast(data_type: Raw) -> tuple[str, Raw]:
    return _transformer({"cast": {"dataType": data_type}, "selectors": SELECTORS})


def _output(folder: Raw = FOLDER, **parts: Any) -> tuple[str, Raw]:
    data_model = {"rootDataSource": {"dataSource": "a", "snapshotFilter": {"fromCron": CRON}}}
    return "OutputDataset", {"dataModel": data_model | parts, "outputFolder": folder}


def _windows(aggregate: Raw) -> tuple[str, Raw]:
    rule = {"parentField": "a", "childField": "b", "aggregates": [aggregate]}
    return _output(otherDataSources=[{"dataSource": "a", "fieldName": "a", "windows": rule}])


def _root(snapshot_filter: Raw) -> tuple[str, Raw]:
    return _output(rootDataSource={"dataSource": "a", "snapshotFilter": snapshot_filter})


def _interval(interval: Raw) -> tuple[str, Raw]:
    return _root({"fromInterval": interval})


def _index(**parts: Any) -> tuple[str, Raw]:
    return "SkippingIndex", INDEX | parts


def _spark(**parts: Any) -> tuple[str, Raw]:
    return _index(run={"spark": parts})


def _pod(**parts: Any) -> tuple[str, Raw]:
    return _spark(podTemplate=parts)


PLACES: dict[type[ApiModel], Callable[[Raw], tuple[str, Raw]]] = {
    common.DataType: _cast,
    common.DecimalType: lambda part: _cast({"decimal": part}),
    common.TimeOffset: lambda part: _output(FOLDER | {"readerGrace": part}),
    datasource.DataSourceSpec: lambda part: ("DataSource", part),
    datasource.HdfsLike: lambda part: _source("hdfsLike", part),
    datasource.SnapshotSettings: lambda part: _files(snapshot=part),
    datasource.FromFieldValue: lambda part: _files(snapshot={"fromFieldValue": part}),
    datasource.Credentials: lambda part: _source("jdbc", JDBC | {"credentials": part}),
    datasource.Jdbc: lambda part: _source("jdbc", part),
    datasource.ComplexVirtual: lambda part: _source("complexVirtual", part),
    datarelationship.KeyComponent: _key,
    datarelationship.Representation: lambda part: ("DataRelationship", {"representations": [part]}),
    fieldtransformer.TransformerSelector: lambda part: _transformer(
        {"drop": {}, "selectors": [part]}
    ),
    fieldtransformer.Rename: lambda part: _transformer({"rename": part, "selectors": SELECTORS}),
    fieldtransformer.Transformer: _transformer,
    metadataapplicator.CoordinateSelector: lambda part: (
        "MetadataApplicator",
        {"fieldSelectors": [part], "metadata": {}},
    ),
    common.LocalDateTime: lambda part: _interval(
        {"intervalStartDate": part, "intervalLength": {"day": 1}}
    ),
    outputdataset.FromInterval: _interval,
    outputdataset.FromCron: lambda part: _root({"fromCron": part}),
    outputdataset.SnapshotFilter: _root,
    outputdataset.OtherDataSource: lambda part: _output(otherDataSources=[part]),
    asof.ChildSnapshot: lambda part: _output(
        otherDataSources=[{"dataSource": "a", "fieldName": "a", "snapshot": part}]
    ),
    asof.AsOf: lambda part: _output(
        otherDataSources=[{"dataSource": "a", "fieldName": "a", "asOf": part}]
    ),
    windows.Windows: lambda part: _output(
        otherDataSources=[{"dataSource": "a", "fieldName": "a", "windows": part}]
    ),
    windows.WindowAggregate: _windows,
    outputdataset.UsedRelationship: lambda part: _output(dataRelationships=[part]),
    outputfolder.SnapshotFormat: lambda part: _output(FOLDER | {"snapshotFormat": part}),
    outputfolder.Tier: lambda part: _output(FOLDER | {"snapshotAutoDelete": {"tiers": [part]}}),
    outputfolder.OutputFolder: _output,
    run.Freshness: lambda part: _index(run={"freshness": part}),
    run.DynamicAllocation: lambda part: _spark(dynamicAllocation=part),
    run.SparkSettings: lambda part: _spark(**part),
    run.DriverSettings: lambda part: _spark(driver=part),
    podtemplate.EnvironmentSource: lambda part: _pod(env=[{"name": "A", "valueFrom": part}]),
    podtemplate.EnvironmentObject: lambda part: _pod(envFrom=[part]),
    podtemplate.EnvironmentVariable: lambda part: _pod(env=[part]),
    podtemplate.Toleration: lambda part: _pod(tolerations=[part]),
    podtemplate.Volume: lambda part: _pod(volumes=[part]),
    podtemplate.VolumeMount: lambda part: _pod(volumeMounts=[part]),
    podtemplate.PodTemplate: lambda part: _pod(**part),
    skippingindex.Index: lambda part: _index(indexes=[part]),
    skippingindex.IndexTarget: lambda part: _index(target=part),
    skippingindex.IndexStore: lambda part: _index(store=part),
    skippingindex.OpenSearchStore: lambda part: _index(store={"openSearch": part}),
    skippingindex.SkippingIndexSpec: lambda part: ("SkippingIndex", part),
}
"""An object, as kind and spec, that is right but for the part that is put into it."""


def changed(right: Raw, change: Mapping[str, object]) -> Raw:
    """A right part with keys replaced or, where the value is None, taken away."""
    return {key: value for key, value in (right | change).items() if value is not None}


def all_models(base: type[ApiModel] = ApiModel) -> set[type[ApiModel]]:
    found = {
        model for model in base.__subclasses__() if model.__module__.startswith("snaploom.models")
    }
    return found.union(*(all_models(model) for model in found))
