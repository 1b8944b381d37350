"""Walks over the fields of models: every text of a resource but of its status, with its path.

Operators walk over thousands of resources at their start. So the fields of a class are listed once,
and members that cannot hold a text cost one comparison.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from types import NoneType

from pydantic import BaseModel

NO_TEXTS = frozenset({NoneType, bool, int, float})
"""Types whose values hold no text."""


@cache
def walked_fields(model: type[BaseModel]) -> tuple[tuple[str, str], ...]:
    """Names of the fields of a model, in Python and in YAML.

    The status is left out: the operator writes it, from what was judged.
    """
    fields = model.model_fields.items()
    return tuple((name, field.alias or name) for name, field in fields if name != "status")


def texts_with(value: object, part: str, path: str = "") -> Iterator[tuple[str, str]]:
    """Path and text of every text below a value that contains a part.

    `part` is a text such as `://`; `path` that of the value, empty for a whole resource.
    """
    if isinstance(value, str):
        if part in value:
            yield path, value
    elif isinstance(value, BaseModel):
        values = vars(value)
        for name, shown in walked_fields(type(value)):
            inner = values[name]
            if type(inner) not in NO_TEXTS:
                yield from texts_with(inner, part, f"{path}.{shown}" if path else shown)
    elif isinstance(value, tuple | list):  # before the test for any mapping, which is slow
        for index, inner in enumerate(value):
            yield from texts_with(inner, part, f"{path}[{index}]")
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from texts_with(inner, part, f"{path}.{name}")
