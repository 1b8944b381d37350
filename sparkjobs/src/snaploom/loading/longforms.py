"""How short forms that people know are written here, where no short form is allowed.

Somebody who writes `snapshotFormat: hivePartitioned` means one thing only. The message of such a
fault shows the form that is right, to be copied. Short forms that are allowed are read in
`snaploom.models.shortforms`.
"""

from __future__ import annotations

import re

from pydantic import JsonValue

from snaploom.loading.modelfields import Target, fields_of
from snaploom.models.base import ApiModel
from snaploom.models.common import DecimalType, TimeOffset
from snaploom.models.shortforms import SQL_NAMES, USUAL_NAMES, ShortFormInvalid, read_type

TYPE_NAMES = {**USUAL_NAMES, **SQL_NAMES} | {
    written: SQL_NAMES.get(name.partition("(")[0], name.partition("(")[0])
    for written, name in USUAL_NAMES.items()
}
"""Names of types in SQL and elsewhere, with those in long forms."""

_LONGEST = 400
"""Characters of a short form that is read."""
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


def plain_form(expected: str, name: str, given: object) -> str:
    """The form to write for a value of the right content; empty where it cannot be guessed."""
    if given is None:
        return f"give a value, or leave `{name}` out"
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
        return len(text) <= _LONGEST and bool(read_type(text))
    except ShortFormInvalid:
        return False
