"""Hypothesis strategies for every model: plain data as it could stand in a YAML file.

They are derived from the models' annotations, not from the generated schemas, so that the schemas
can be tested with them. Rules that span fields are met by shaping what was drawn (`_SHAPES`).
"""

import types
from calendar import monthrange
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from annotated_types import Ge, Le, MaxLen, MinLen
from hypothesis import strategies as st
from pydantic import JsonValue, SecretStr, StringConstraints
from pydantic.fields import FieldInfo

from snaploom.models.asof import AsOf, ChildSnapshot
from snaploom.models.base import ApiModel, ListType
from snaploom.models.common import (
    DataType,
    DecimalType,
    LocalDateTime,
    ObjectMeta,
    Resource,
    TimeOffset,
)
from snaploom.models.datarelationship import KeyComponent
from snaploom.models.datasource import FromFieldValue, HdfsLike, Jdbc
from snaploom.models.fieldtransformer import CoordinateSelector, Rename, TransformerSelector
from snaploom.models.outputdataset import FromCron, FromInterval, OutputFolder, Tier
from snaploom.models.run import DynamicAllocation, EnvironmentVariable, Freshness, Toleration
from snaploom.models.skippingindex import OpenSearchStore, SkippingIndexSpec
from snaploom.models.windows import WindowAggregate

Data = dict[str, Any]
M = TypeVar("M", bound=ApiModel)
MOST_MEMBERS = 3
"""Longest list or map that is drawn: enough to be several."""
_TEXT = st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"])


@cache
def resources(model: type[Resource], with_status: bool = True) -> st.SearchStrategy[Data]:
    """Plain data of a resource of one kind; every one is accepted by `model.parse`."""
    hidden: tuple[str, ...] = () if with_status else ("status",)
    return model_data(model, leave_out=hidden)


@cache
def model_data(
    model: type[ApiModel], depth: int = 2, leave_out: tuple[str, ...] = ()
) -> st.SearchStrategy[Data]:
    """Plain data of a model.

    Args:
        model: the model.
        depth: levels of data types inside data types.
        leave_out: outside names of optional fields that are not drawn.
    """
    if model is DataType:
        return _data_type(depth)
    if model is ObjectMeta:
        return st.fixed_dictionaries({"name": st.from_regex(r"\A[a-z][a-z0-9]{0,9}\Z")})
    names = {field.alias or name: field for name, field in model.model_fields.items()}
    fields = {name: _field(field, depth) for name, field in names.items() if name not in leave_out}
    required = {name for name in fields if names[name].is_required() or name == "kind"}
    plain = st.fixed_dictionaries(
        {name: strategy for name, strategy in fields.items() if name in required},
        optional={
            name: strategy
            for name, strategy in fields.items()
            if name not in required and name not in model.one_of
        },
    )
    if model.one_of:
        variants = [st.fixed_dictionaries({name: fields[name]}) for name in model.one_of]
        plain = st.builds(lambda rest, one: rest | one, plain, st.one_of(variants))
    shape = _SHAPES.get(model)
    return plain.map(shape) if shape else plain


def _field(field: FieldInfo, depth: int) -> st.SearchStrategy[Any]:
    return _value(field.annotation, tuple(field.metadata), depth)


def _value(annotation: Any, metadata: tuple[Any, ...], depth: int) -> st.SearchStrategy[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *own = get_args(annotation)
        return _value(inner, (*own, *metadata), depth)
    if origin in (Union, types.UnionType):
        (given,) = (member for member in get_args(annotation) if member is not types.NoneType)
        return _value(given, metadata, depth)
    if origin is Literal:
        return st.sampled_from(get_args(annotation))
    if origin is tuple:
        return _list(get_args(annotation)[0], metadata, depth)
    if origin in (dict, Mapping):
        return st.dictionaries(
            *(_value(part, (), depth) for part in get_args(annotation)), max_size=MOST_MEMBERS
        )
    return _scalar(annotation, metadata, depth)


def _scalar(annotation: Any, metadata: tuple[Any, ...], depth: int) -> st.SearchStrategy[Any]:
    if issubclass(annotation, ApiModel):
        return model_data(annotation, depth)
    if issubclass(annotation, Enum):
        return st.sampled_from([member.value for member in annotation])
    if annotation is bool:
        return st.booleans()
    if annotation in (int, float):
        least = _bound(metadata, Ge, "ge", 0)
        most = _bound(metadata, Le, "le", 2**40)
        return st.integers(least, most) if annotation is int else st.floats(least, most)
    if annotation in (str, SecretStr):
        return _text(metadata)
    raise AssertionError(f"no strategy for {annotation}")


def _bound(metadata: tuple[Any, ...], kind: type, name: str, otherwise: int) -> int:
    return next((getattr(item, name) for item in metadata if isinstance(item, kind)), otherwise)


def _text(metadata: tuple[Any, ...]) -> st.SearchStrategy[str]:
    constraints = [item for item in metadata if isinstance(item, StringConstraints)]
    pattern = next((item.pattern for item in constraints if item.pattern), None)
    least = next((item.min_length for item in constraints if item.min_length), 0)
    most = next((item.max_length for item in constraints if item.max_length), 40)
    if pattern:
        regex = rf"\A{str(pattern).removeprefix('^').removesuffix('$')}\Z"
        return st.from_regex(regex, alphabet=_TEXT).filter(lambda text: least <= len(text) <= most)
    return st.text(_TEXT, min_size=least, max_size=min(most, 12))


def _list(member: Any, metadata: tuple[Any, ...], depth: int) -> st.SearchStrategy[list[Any]]:
    least = next((item.min_length for item in metadata if isinstance(item, MinLen)), 0)
    most = next((item.max_length for item in metadata if isinstance(item, MaxLen)), MOST_MEMBERS)
    merge = next((item for item in metadata if isinstance(item, ListType)), ListType("atomic"))
    return st.lists(
        _value(member, (), depth),
        min_size=least,
        max_size=max(least, min(most, MOST_MEMBERS)),
        unique_by=_identity(merge),
    )


def _identity(merge: ListType) -> Callable[[Any], Any] | None:
    match merge.kind:
        case "atomic":
            return None
        case "set":
            return lambda member: member
        case "map":
            return lambda member: tuple(member[key] for key in merge.keys)


_CONTAINERS = ("array", "map", "struct")


def _data_type(depth: int) -> st.SearchStrategy[Data]:
    names = [name for name in DataType.one_of if depth > 0 or name not in _CONTAINERS]
    fields = {f.alias or name: f for name, f in DataType.model_fields.items()}
    return st.one_of(
        st.fixed_dictionaries({name: _field(fields[name], depth - 1)}) for name in names
    )


def _without(*names: str) -> Callable[[Data], Data]:
    return lambda data: {name: value for name, value in data.items() if name not in names}


def _lengthened(name: str) -> Callable[[Data], Data]:
    def shape(data: Data) -> Data:
        return data if any(data[name].values()) else data | {name: data[name] | {"day": 1}}

    return shape


def _existing_day(data: Data) -> Data:
    return data | {"day": min(data["day"], monthrange(data["year"], data["month"])[1])}


def _connectable(data: Data) -> Data:
    if "database" in data:
        return _without("url")(data)
    return _without("host", "port")({"url": "jdbc:h2:mem:x"} | data)


def _placed(data: Data) -> Data:
    if "table" in data:
        return _without("sourceUriGlobs")(data) | {"format": "iceberg"}
    return data if data.get("sourceUriGlobs") else data | {"sourceUriGlobs": ["/a"]}


def _of_history(data: Data) -> Data:
    if "history" not in data:
        return data
    return _without("preference", "timeBefore", "timeAfter")(data) | {"history": {"day": 30}}


def _as_of(data: Data) -> Data:
    if "childUntilField" in data:
        data = _without("direction", "strict", "ties")(data)
    return _without("numberTolerance")(data) if "tolerance" in data else data


def _aggregated(data: Data) -> Data:
    if "over" in data:
        data = data | {"over": {"day": 7}}
    if data["function"] != "COUNT":
        data = {"field": "a"} | data
    return {"k": 2} | data if data["function"] == "LAST_K" else _without("k")(data)


def _renamed(data: Data) -> Data:
    if "to" in data:
        return {"to": data["to"]}
    return {"pattern": "a", "replacement": "b"} | data


def _selecting(data: Data) -> Data:
    return data or {"coordinateIncludeRegex": "a"}


def _writable(data: Data) -> Data:
    if "table" in data:
        data = data | {"dataFormat": "ICEBERG"}
    return data | {"folderUri": data["folderUri"] + "/", "dataCompression": "SNAPPY"}


def _authenticated(data: Data) -> Data:
    if data.get("auth") == "BASIC":
        return {"credentials": {"fromSecret": {"name": "search"}}} | data
    return _without("credentials")({"region": "eu-west-1"} | data)


def _triggered(data: Data) -> Data:
    return data | {"refresh": {"mode": "FULL"}} if "refresh" in data else data


def _ordered(data: Data) -> Data:
    return _without("minExecutors")(data) if "maxExecutors" in data else data


def _pattern_of_its_format(data: Data) -> Data:
    rest = {name: value for name, value in data.items() if name != "timePattern"}
    return rest | ({"timePattern": "yyyy-MM"} if data["timeFormat"] == "PATTERN" else {})


_SHAPES: dict[type[ApiModel], Callable[[Data], Data]] = {
    FromFieldValue: _pattern_of_its_format,
    DecimalType: lambda data: data | {"scale": min(data["scale"], data["precision"])},
    KeyComponent: lambda data: data if len(data["fields"]) == 1 else {"query": "a + b"} | data,
    HdfsLike: _placed,
    ChildSnapshot: _of_history,
    AsOf: _as_of,
    WindowAggregate: _aggregated,
    Jdbc: _connectable,
    Rename: _renamed,
    TransformerSelector: _selecting,
    CoordinateSelector: _selecting,
    LocalDateTime: _existing_day,
    FromInterval: _lengthened("intervalLength"),
    FromCron: _lengthened("length"),
    Tier: _lengthened("keepOneEvery"),
    Freshness: _lengthened("maxAge"),
    OutputFolder: _writable,
    EnvironmentVariable: lambda data: _without("value")(data) if "valueFrom" in data else data,
    Toleration: lambda data: data if "key" in data else data | {"operator": "Exists"},
    DynamicAllocation: _ordered,
    OpenSearchStore: _authenticated,
    SkippingIndexSpec: _triggered,
}


def time_offsets() -> st.SearchStrategy[TimeOffset]:
    return model_data(TimeOffset).map(parse_with(TimeOffset))


def data_types(depth: int = 2) -> st.SearchStrategy[DataType]:
    return model_data(DataType, depth).map(parse_with(DataType))


def parse_with(model: type[M]) -> Callable[[JsonValue], M]:
    return model.parse
