"""The base of every model of the API: naming, strictness, documentation, and variables."""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar, Final, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    JsonValue,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import (
    CoreSchema,
    PydanticCustomError,
    PydanticSerializationError,
    core_schema,
    to_json,
)

# Meanings of the members of enums and the fields of models: the strings below them in the source.


def member_docs(enum: type[Enum]) -> dict[str, str]:
    """The meaning of each member that has one, by value, on one line."""
    return {str(enum[name].value): one_line(text) for name, text in _docs(enum)}


def field_docs(model: type[BaseModel]) -> dict[str, str]:
    """The meaning of each field of a model that has one, by name inside Python."""
    bases = [base for base in reversed(model.__mro__) if issubclass(base, BaseModel)]
    found = dict(docs for base in bases if base is not BaseModel for docs in _docs(base))
    return {name: found[name] for name in model.model_fields if name in found}


_CITATION = re.compile(r" \((?:rules? [WSRP]|decisions? )\d[^)]*\)")


def one_line(text: str) -> str:
    """A docstring as users read it: on one line, and without citations of rules and decisions."""
    return _CITATION.sub("", " ".join(text.split()))


def _docs(owner: type) -> Iterator[tuple[str, str]]:
    found = _classes(owner.__module__).get(owner.__name__)
    for member, string in pairwise(found.body if found else ()):  # none: made by `create_model`
        if (name := _assigned(member)) and (text := _string(string)):
            yield name, inspect.cleandoc(text)


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def _assigned(node: ast.stmt) -> str | None:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return None


def _string(node: ast.stmt) -> str | None:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return node.value.value if isinstance(node.value.value, str) else None
    return None


# Marks of fields: where a declaration may have variables of a project, or a path from its file.

WITHOUT_VARIABLE = r"^([^$]|\$+[^$(])*\$*$"
"""Pattern of a text without `$(`."""


@dataclass(frozen=True)
class Variables:
    """Marks a text in which `$(name)` stands for the value of a variable."""

    of: str
    """The kind of the text, for messages: a URI, a name or a time."""


class PathForm(StrEnum):
    """Escaping of a folder's characters in a path."""

    PLAIN = "PLAIN"
    """As they are."""
    GLOB = "GLOB"
    """As Hadoop's globs: `*`, `?`, `[`, `{` and their like behind a backslash."""
    PREFIX = "PREFIX"
    """As a prefix with captures: braces are doubled."""


@dataclass(frozen=True)
class LocalPath:
    """Marks a text that may be a path relative to the file which declares it."""

    form: PathForm = PathForm.PLAIN
    """Escaping of the file's folder in front of it."""
    field: str = ""
    """A field beside it that decides whether it is a path at all; empty, it always is."""
    values: frozenset[str] = frozenset()
    """Values of that field with which it is one."""


# The base of every model of the API: naming, strictness, and rules beyond a schema.

CONTRADICTION: Final = "contradiction"
"""Error type of every rule between fields of one model; its message is written for people."""

ONE_OF_KEYWORD = "x-snaploom-one-of"
"""Keyword of the models' JSON Schemas that names the fields of which exactly one must be given."""


def contradiction(message: str, *, found: str, expected: str, hint: str) -> PydanticCustomError:
    """The error of a rule between fields, with all parts of a finding.

    `found` is never a secret.
    """
    words = {"message": message, "found": found, "expected": expected, "hint": hint}
    return PydanticCustomError(CONTRADICTION, "{message}; found {found}", words)


@dataclass(frozen=True)
class CelRule:
    """A rule that the API server evaluates (Common Expression Language), with its message."""

    rule: str
    message: str


@dataclass(frozen=True)
class ListType:
    """Kubernetes' merge of a list: `map` by keys, `set` of scalars, or `atomic` as a whole.

    A `map` or `set` with two equal members is refused by the API server; the same is refused here.
    """

    kind: Literal["map", "set", "atomic"]
    keys: tuple[str, ...] = ()

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        schema = handler(source)
        if self.kind == "atomic":
            return schema
        return core_schema.no_info_after_validator_function(self._refuse_duplicates, schema)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        result = handler(schema)
        result["x-kubernetes-list-type"] = self.kind
        if self.keys:
            result["x-kubernetes-list-map-keys"] = list(self.keys)
        return result

    def _refuse_duplicates(self, members: tuple[Any, ...]) -> tuple[Any, ...]:
        seen: dict[Any, int] = {}
        for index, member in enumerate(members):
            key = member if self.kind == "set" else self._key_of(member)
            if key in seen:
                raise PydanticCustomError(
                    "duplicate_member",
                    "members {first} and {second} are both {key}; each may be listed once",
                    {"first": seen[key], "second": index, "key": _display(key)},
                )
            seen[key] = index
        return members

    def _key_of(self, member: BaseModel) -> tuple[Any, ...]:
        names = _names(type(member))
        return tuple(getattr(member, names[key]) for key in self.keys)


def _display(key: object) -> str:
    parts = key if isinstance(key, tuple) else (key,)
    return ", ".join(str(part) for part in parts)


_GIVEN: Final[dict[frozenset[str], set[str]]] = {}
"""Sets of field names that objects share. pydantic keeps one for each object, of the fields that
were given: a third of all memory where thousands of resources are held."""


class ApiModel(BaseModel):
    """Base of every model that is read from, or written to, YAML or JSON."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        extra="forbid",
        frozen=True,
        defer_build=True,
        allow_inf_nan=False,
    )

    one_of: ClassVar[tuple[str, ...]] = ()
    """Names (outside form) of the fields of which exactly one must be given; empty for none."""
    one_of_by_count: ClassVar[bool] = False
    """Whether the API server counts properties instead of evaluating a rule, which costs nothing;
    only where `one_of` names every field, for models that stand deep under lists."""
    cel_rules: ClassVar[tuple[CelRule, ...]] = ()
    """Rules for the API server beyond `one_of`; each has a twin among the model's validators."""
    secrets_checked_elsewhere: ClassVar[frozenset[str]] = frozenset()
    """Fields (inside Python) whose own checks look for secrets, and report them as errors."""

    @classmethod
    def parse(cls, raw: JsonValue) -> Self:
        """Parse plain data as it stands in YAML or JSON: camelCase keys only, no conversions."""
        return cls.model_validate_json(_json(raw), strict=True, by_alias=True, by_name=False)

    def dump(self) -> dict[str, JsonValue]:
        """Plain data for YAML or JSON: camelCase keys, None left out, defaults written."""
        result: dict[str, JsonValue] = self.model_dump(
            mode="json", by_alias=True, exclude_none=True
        )
        return result

    def dump_json(self) -> str:
        """Canonical JSON: sorted keys, no spaces; equal models give equal text."""
        return json.dumps(self.dump(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    def changed(self, **values: object) -> Self:
        """A copy with other values of some fields, which are valid; it shares all others.

        The values are by name inside Python.
        """
        copied = self.model_copy(update=values)
        copied._share_given()
        return copied

    def _share_given(self) -> None:
        given = self.__pydantic_fields_set__
        shared = _GIVEN.setdefault(frozenset(given), given)
        object.__setattr__(self, "__pydantic_fields_set__", shared)

    @model_validator(mode="after")
    def _settle(self) -> Self:
        """Share the set of names, and hold it to `one_of`."""
        self._share_given()
        if self.one_of:
            names = _names(type(self))
            found = [alias for alias in self.one_of if getattr(self, names[alias]) is not None]
            if len(found) != 1:
                raise PydanticCustomError(
                    "one_of",
                    "expected exactly one of {expected}, found {found}",
                    {
                        "expected": ", ".join(self.one_of),
                        "found": " and ".join(found) if found else "none",
                    },
                )
        return self

    @classmethod
    def variant_of(cls, value: ApiModel) -> str:
        """The name (outside form) of the one field of a `one_of` model that is given."""
        names = _names(type(value))
        return next(a for a in value.one_of if getattr(value, names[a]) is not None)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        result = handler(schema)
        target = handler.resolve_ref_schema(result)
        if cls.one_of and not cls.one_of_by_count:
            target[ONE_OF_KEYWORD] = list(cls.one_of)
        elif cls.one_of:
            target["minProperties"] = target["maxProperties"] = 1
        if cls.cel_rules:
            target["x-kubernetes-validations"] = [
                {"rule": rule.rule, "message": rule.message} for rule in cls.cel_rules
            ]
        return result


@cache
def _names(model: type[BaseModel]) -> Mapping[str, str]:
    return {field.alias or name: name for name, field in model.model_fields.items()}


def _json(raw: JsonValue) -> bytes | str:
    """As JSON, in a third of json's time: operators parse thousands of objects at their start."""
    try:
        return to_json(raw, inf_nan_mode="constants")
    except PydanticSerializationError:  # half of a surrogate pair, which the parser then refuses
        return json.dumps(raw)
