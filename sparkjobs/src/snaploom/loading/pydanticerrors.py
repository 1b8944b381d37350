"""Turns pydantic's errors to findings about declarations."""

import json
import re
import types
import typing
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, Union

from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import ErrorDetails

from snaploom.loading import nearmisses
from snaploom.loading.composer import Node, Segment, join_path, scalar_at
from snaploom.models import shortforms
from snaploom.models.allowances import VARIABLE_PATTERN
from snaploom.models.base import CONTRADICTION, WITHOUT_VARIABLE, ApiModel
from snaploom.models.common import DataType, DecimalType, TimeOffset
from snaploom.models.findings import Finding, make_finding

# Expectations of a place inside a model: its names, its form, and other places of a name.

Target = type[ApiModel] | None
"""The model that a place holds; None for anything else."""

_NAMED = 6
_DEEPEST = 10
"""Levels of fields that are searched for a name; no kind has more without going round."""


@lru_cache(maxsize=4096)
def allowed_names(model: type[ApiModel], loc: tuple[str | int, ...]) -> tuple[str, ...]:
    """Names of the fields at a place inside a model; empty where any name is allowed."""
    target = target_at(model, loc)
    return () if target is None else tuple(name for name, _ in fields_of(target))


@lru_cache(maxsize=4096)
def target_at(model: type[ApiModel], loc: tuple[str | int, ...]) -> Target:
    """The model at a place inside a model; None where there is none."""
    found = _unwrapped(_annotation_at(model, loc))
    return found if isinstance(found, type) and issubclass(found, ApiModel) else None


@lru_cache(maxsize=4096)
def form_at(model: type[ApiModel], loc: tuple[str | int, ...]) -> str:
    """The forms allowed at a place, in a few words; empty where it has no short form."""
    found = _unwrapped(_annotation_at(model, loc))
    if isinstance(found, type):
        if issubclass(found, Enum):
            return f"one of {_some([str(each.value) for each in found])}"
        if issubclass(found, ApiModel):
            if found.one_of:
                return f"a mapping with one of {_some(list(found.one_of))}"
            required = [name for name, is_required in fields_of(found) if is_required]
            named = required or [name for name, _ in fields_of(found)]
            return f"a mapping with {_some(named)}" if named else "an empty mapping, {}"
        return {str: "text", int: "a whole number", bool: "true or false", float: "a number"}.get(
            found, ""
        )
    origin = typing.get_origin(found)
    if origin is tuple:
        return "a list"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a mapping of names to values"
    return ""


def _some(names: list[str]) -> str:
    more = ", ..." if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


@lru_cache(maxsize=1024)
def elsewhere(model: type[ApiModel], name: str) -> str:
    """The first place of a kind's spec that has a field of a name; empty where there is none."""
    return next(_places(model, name), "")


def _places(model: type[ApiModel], name: str) -> Iterator[str]:
    waiting: list[tuple[str, Any, tuple[type, ...]]] = [
        ("spec", _annotation_at(model, ("spec",)), ())
    ]
    while waiting:
        path, annotation, inside = waiting.pop(0)
        target, path = _inner(annotation, path)
        if target is None or target in inside or len(inside) >= _DEEPEST:
            continue
        for alias, field in _annotated(target):
            if alias == name:
                yield f"{path}.{alias}"
            waiting.append((f"{path}.{alias}", field, (*inside, target)))


def _inner(annotation: Any, path: str) -> tuple[Target, str]:
    found = _unwrapped(annotation)
    if typing.get_origin(found) is tuple:
        return _inner(typing.get_args(found)[0], f"{path}[]")
    is_model = isinstance(found, type) and issubclass(found, ApiModel)
    return (found, path) if is_model else (None, path)


def fields_of(model: type[ApiModel]) -> Iterator[tuple[str, bool]]:
    """Outside names of the fields of a model, and whether they are required."""
    for name, field in model.model_fields.items():
        yield field.alias or name, field.is_required()


def _annotated(model: type[ApiModel]) -> Iterator[tuple[str, Any]]:
    for name, field in model.model_fields.items():
        yield field.alias or name, field.annotation


def _annotation_at(model: type[ApiModel], loc: tuple[str | int, ...]) -> Any:
    place: Any = model
    for segment in loc:
        place = _step(place, segment)
    return place


def _step(place: Any, segment: str | int) -> Any:
    target = _unwrapped(place)
    if isinstance(target, type) and issubclass(target, BaseModel):
        for name, field in target.model_fields.items():
            if (field.alias or name) == segment:
                return field.annotation
        return None
    arguments = typing.get_args(target)
    origin = typing.get_origin(target)
    if origin is tuple and arguments:
        return arguments[0]
    if isinstance(origin, type) and issubclass(origin, Mapping) and len(arguments) == 2:
        return arguments[1]
    return None


def _unwrapped(annotation: Any) -> Any:
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _unwrapped(typing.get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        members = [a for a in typing.get_args(annotation) if a is not type(None)]
        return _unwrapped(members[0]) if len(members) == 1 else annotation
    return annotation


# Spellings of short forms that people know, where no short form is allowed.

TYPE_NAMES = {**shortforms.USUAL_NAMES, **shortforms.SQL_NAMES} | {
    written: shortforms.SQL_NAMES.get(name.partition("(")[0], name.partition("(")[0])
    for written, name in shortforms.USUAL_NAMES.items()
}
"""Names of types in SQL and elsewhere, with those in long forms."""

_LONGEST = 400
_NUMBER = re.compile(r"-?\d{1,18}(\.\d{1,18})?")
_PLAIN = re.compile(r"[^\"\\\x00-\x1f`]{1,200}")
"""Text that stands in double quotes as it is."""


def long_form(target: Target, name: str, given: object) -> str:
    """The mapping to write instead of a text; empty where it cannot be guessed."""
    if target is None:
        return ""
    if isinstance(given, int) and not isinstance(given, bool) and issubclass(target, TimeOffset):
        return f"write the unit too, such as `{name}: {given}d`"
    if not isinstance(given, str) or len(given) > _LONGEST:
        return ""
    form = _form(target, given.strip())
    if form is not None:
        return f"write `{name}: {flow(form)}`"
    parts = [each for each, is_required in fields_of(target) if is_required]
    return f"write `{name}: {{{parts[0]}: ...}}`" if len(parts) == 1 else ""


def plain_form(expected: str, name: str, given: object, *, is_required: bool) -> str:
    """The form to write for a value of the right content; empty where it cannot be guessed."""
    if given is None:
        return f"give `{name}` a value" if is_required else f"give a value, or leave `{name}` out"
    if expected == "a list":
        if isinstance(given, str) and _PLAIN.fullmatch(given):
            return f'write a list: `{name}: ["{given}"]`'
        return f"write a list: `{name}: [...]`"
    if isinstance(given, str) and _NUMBER.fullmatch(given) and expected.endswith("number"):
        return f"write it without quotes: `{name}: {given}`"
    return ""


def flow(value: JsonValue) -> str:
    """A value in YAML's flow form, in one line."""
    match value:
        case dict():
            return "{" + ", ".join(f"{key}: {flow(each)}" for key, each in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(flow, value)) + "]"
        case bool():
            return "true" if value else "false"
        case _:
            return str(value)


def _form(target: type[ApiModel], given: str) -> JsonValue:
    if issubclass(target, DecimalType):
        found = re.fullmatch(r"\(?(\d+)\s*,\s*(\d+)\)?", given)
        return {"precision": int(found[1]), "scale": int(found[2])} if found else None
    if given in target.one_of:
        return {given: {}}
    return None


def is_type(text: str) -> bool:
    """Whether a text is a type as SQL writes it."""
    try:
        return len(text) <= _LONGEST and bool(shortforms.read_type(text))
    except shortforms.ShortFormInvalid:
        return False


# Turns pydantic's errors to findings about declarations.

TYPES = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number of 64 bits",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "mapping_type": "a mapping",
    "dict_type": "a mapping",
    "frozen_dict_type": "a mapping",
    "tuple_type": "a list",
    "list_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "iterable_type": "a list",
    "none_required": "nothing",
    "string_unicode": "text",
}
"""Expected types (SL112), by pydantic's error type."""

PATTERNS = {
    r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$": (
        "letters, digits, '-', '_' and '.', with a letter or digit first and last"
    ),
    r"^[A-Za-z_][A-Za-z0-9_]*$": "letters, digits and '_', not beginning with a digit",
    r"^[A-Z][A-Z0-9_]*$": "capital letters, digits and '_', such as MIN_MAX",
    r"^[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)+$": "a namespace and a name, such as shop.orders",
    r"^[1-9][0-9]*[kmgtKMGT]i?[bB]?$": "an amount of memory such as 512m or 4g",
    r"^/[^:]*$": "an absolute path without ':'",
    WITHOUT_VARIABLE: "a text without variables; `snaploom render` prints what they stand for",
    VARIABLE_PATTERN: "letters, digits, '_' and '-', not beginning with a digit",
    r"^([^$\x00-\x1f]|\$+[^$(\x00-\x1f])*\$*$": "one line of text, without variables in it",
}
"""Descriptions of the patterns of the models; another pattern is shown as it is."""

_SECRET = re.compile(r"credential|plaintext|passw|secret|token|accesskey|private", re.IGNORECASE)


def findings_of(
    error: ValidationError, model: type[ApiModel], node: Node | None, resource: str
) -> tuple[Finding, ...]:
    """Every fault of one resource, with paths from its root; `node` None where it is in no file."""
    kept = [
        _without_tags(details)
        for details in error.errors(include_url=False, include_input=True)
        if not _is_short_by_faults(details)
    ]
    misspelt = {place for details in kept for place in _meant(details, model)}
    return tuple(
        _finding(details, model, node, resource)
        for details in kept
        if not (details["type"] == "missing" and details["loc"] in misspelt)
    )


def _without_tags(details: ErrorDetails) -> ErrorDetails:
    """The error without pydantic's additions to its place where a short form could stand."""
    place = tuple(
        each for each in details["loc"] if each not in (shortforms.TEXT_TAG, shortforms.FORM_TAG)
    )
    return {**details, "loc": place}


def _meant(details: ErrorDetails, model: type[ApiModel]) -> Iterator[tuple[Segment, ...]]:
    """The place that an unknown field was meant for: that field is not missing as well."""
    if details["type"] == "extra_forbidden":
        *above, name = details["loc"]
        meant = nearmisses.meant_field(str(name), allowed_names(model, tuple(above)))
        if meant is not None:
            yield (*above, meant)


def _is_short_by_faults(details: ErrorDetails) -> bool:
    """A list that is long enough counts as too short when its members have faults of their own."""
    given = details["input"]
    return (
        details["type"] == "too_short"
        and isinstance(given, list)
        and len(given) >= int(details["ctx"]["min_length"])
    )


def _finding(
    details: ErrorDetails, model: type[ApiModel], node: Node | None, resource: str
) -> Finding:
    loc = tuple(segment for segment in details["loc"] if segment != "[key]")
    words = _words(details, model, loc)
    shown = words.get("found", _found(details, loc))
    quoted = _quoting_hint(details, node, loc)
    return make_finding(
        words["code"],
        words["message"],
        resource=resource,
        path=join_path(_refined(details, loc)),
        found=shown,
        expected=words.get("expected", ""),
        hint=words.get("hint", "") or quoted,
    )


def _words(
    details: ErrorDetails, model: type[ApiModel], loc: tuple[Segment, ...]
) -> dict[str, str]:
    kind, context = details["type"], details.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_field(model, loc, details["input"])
    if kind == "missing":
        return {
            "code": "SL111",
            "message": f"`{loc[-1]}` is missing",
            "found": "nothing",
            "expected": form_at(model, loc) or f"a value for `{loc[-1]}`",
            "hint": f"add `{loc[-1]}`",
        }
    if kind in TYPES:
        return {
            "code": "SL112",
            "message": "the value has the wrong type",
            "expected": (form_at(model, loc) if TYPES[kind] == "a mapping" else "") or TYPES[kind],
            "hint": _form_hint(kind, model, loc, details["input"]),
        }
    if kind in ("enum", "literal_error"):
        return _not_listed(str(context.get("expected", "")), details["input"])
    if kind == "one_of":
        return {
            "code": "SL114",
            "message": f"exactly one of these must be given: {context['expected']}",
            "found": str(context["found"]),
            "expected": "exactly one",
            "hint": _variant_hint(str(context["found"]), details["input"]),
        }
    if kind == "duplicate_member":
        return {
            "code": "SL115",
            "message": f"{context['key']} is listed twice",
            "found": f"members {context['first']} and {context['second']}",
            "expected": "each once",
            "hint": "remove one of the two",
        }
    if kind == CONTRADICTION:
        parts = {name: str(context[name]) for name in ("message", "found", "expected", "hint")}
        return {"code": "SL116", **parts}
    if kind == shortforms.SHORT_FORM:
        parts = {name: str(context[name]) for name in ("message", "expected", "hint")}
        return {"code": "SL113", **parts}
    bound = _bound(kind, context)
    return {
        "code": "SL113",
        "message": "the value is not allowed",
        "expected": bound,
        "hint": f"write {bound}" if bound else "",
    }


def _form_hint(kind: str, model: type[ApiModel], loc: tuple[Segment, ...], given: object) -> str:
    name = str(loc[-1]) if loc and isinstance(loc[-1], str) else ""
    if not name or is_secret(loc):
        return ""
    is_required = (name, True) in fields_of(target_at(model, loc[:-1]) or ApiModel)
    return (
        long_form(target_at(model, loc), name, given)
        or _reference_hint(given)
        or plain_form(TYPES[kind], name, given, is_required=is_required)
    )


def _variant_hint(found: str, given: object) -> str:
    if found != "none":
        return "keep one of them"
    parts = given.items() if isinstance(given, dict) else ()
    empty = [name for name, value in parts if value is None]
    return f"give `{empty[0]}` a value, `{{}}` for none" if len(empty) == 1 else "add one of them"


def _unknown_field(
    model: type[ApiModel], loc: tuple[Segment, ...], given: object
) -> dict[str, str]:
    name = str(loc[-1])
    allowed = allowed_names(model, loc[:-1])
    return {
        "code": "SL110",
        "message": f"there is no field `{name}` here",
        "found": name,
        "expected": nearmisses.listing(allowed),
        "hint": _type_hint(model, loc, given)
        or nearmisses.field_hint(name, allowed)
        or _elsewhere_hint(model, name)
        or "remove it",
    }


def _type_hint(model: type[ApiModel], loc: tuple[Segment, ...], given: object) -> str:
    """The name that a type has here, of one that SQL calls otherwise, or that stands as a value."""
    if target_at(model, loc[:-1]) is not DataType:
        return ""
    called = TYPE_NAMES.get(str(loc[-1]).lower())
    if called:
        return f"it is called `{called}`"
    return f"write only `{given}`" if isinstance(given, str) and is_type(given) else ""


def _elsewhere_hint(model: type[ApiModel], name: str) -> str:
    place = elsewhere(model, name)
    return f"there is one at {place}; move it there, or remove it" if place else ""


def _not_listed(expected: str, given: object) -> dict[str, str]:
    names = tuple(re.findall(r"'([^']*)'", expected))
    return {
        "code": "SL113",
        "message": "the value is not one of those that are allowed",
        "expected": ", ".join(names) if names else expected,
        "hint": nearmisses.did_you_mean(given, names) if isinstance(given, str) else "",
    }


def _bound(kind: str, context: dict[str, object]) -> str:
    match kind:
        case "greater_than":
            return f"more than {context['gt']}"
        case "greater_than_equal":
            return f"at least {context['ge']}"
        case "less_than":
            return f"less than {context['lt']}"
        case "less_than_equal":
            return f"at most {context['le']}"
        case "multiple_of":
            return f"a multiple of {context['multiple_of']}"
        case "string_too_short":
            return f"at least {nearmisses.counted(context['min_length'], 'character')}"
        case "string_too_long":
            return f"at most {nearmisses.counted(context['max_length'], 'character')}"
        case "too_short":
            return f"at least {nearmisses.counted(context['min_length'], 'member')}"
        case "too_long":
            return f"at most {nearmisses.counted(context['max_length'], 'member')}"
        case "string_pattern_mismatch":
            pattern = str(context["pattern"])
            return PATTERNS.get(pattern, f"text that matches {pattern}")
        case _:
            return ""


def _refined(details: ErrorDetails, loc: tuple[Segment, ...]) -> tuple[Segment, ...]:
    if details["type"] == "duplicate_member":
        return (*loc, int(details["ctx"]["second"]))
    return loc


def _found(details: ErrorDetails, loc: tuple[Segment, ...]) -> str:
    if is_secret(loc):
        return "(not shown: it may be secret)"
    return nearmisses.display(details["input"])


def is_secret(loc: tuple[Segment, ...]) -> bool:
    """Whether the value at a place may hold a secret."""
    names = [segment for segment in loc if isinstance(segment, str)]
    in_jdbc = "jdbc" in names and names[-1] in ("url", "connection")
    return in_jdbc or any(_SECRET.search(name) for name in names)


def names_secret(name: str) -> bool:
    """Whether something is called like a secret."""
    return _SECRET.search(name) is not None


def _reference_hint(given: object) -> str:
    """A reference in the form of an earlier design, which has a name in a mapping."""
    if isinstance(given, dict) and isinstance(given.get("name"), str):
        return f"references are names: write only `{given['name']}`"
    return ""


def _quoting_hint(details: ErrorDetails, node: Node | None, loc: tuple[Segment, ...]) -> str:
    """Text that YAML takes for something else, because it is not in quotes."""
    given: JsonValue = details["input"]
    if details["type"] != "string_type" or isinstance(given, dict | list | None) or is_secret(loc):
        return ""
    scalar = scalar_at(node, loc) if node is not None else None
    return f'put it in quotes: "{json.dumps(given) if scalar is None else scalar.text}"'
