"""Columns of the model of `support.declared.declarations`, in the words of a woven snapshot."""

import json
from typing import Any

from support.declared.declarations import Raw

from snaploom.models.common import parse_instant
from snaploom.run.runevents import ReadColumns

TIME = parse_instant("2020-01-01T00:00:00Z")


def struct(**fields: Any) -> Raw:
    """Spark's JSON of a struct; a field's type is a name, or another struct."""
    return {
        "type": "struct",
        "fields": [
            {"name": name, "type": type_, "nullable": True, "metadata": {}}
            for name, type_ in fields.items()
        ],
    }


def array(element: Any) -> Raw:
    return {"type": "array", "elementType": element, "containsNull": True}


def read(**fields: Any) -> ReadColumns:
    return ReadColumns(json.dumps(struct(**fields)), TIME)


CUSTOMER = read(customer_id="long", name="string")
ADDRESS = read(customer_id="long", city="string")
WOVEN = struct(
    data=struct(customer_id="long", name="string"),
    address=struct(data=struct(customer_id="long", city="string")),
)
