"""Many declarations: the flights example, again and again, under names and folders of its own."""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path
from typing import Any

import yaml

Raw = dict[str, Any]

EXAMPLE = Path(__file__).parents[1] / "examples" / "flights"
NOT_NAMES = {"alias", "fieldName", "name"}
"""Keys whose text may equal the name of a resource and is none."""


@cache
def examples() -> tuple[Raw, ...]:
    """Nine sources, seven relationships, an output and an index."""
    texts = [path.read_text("utf-8") for path in sorted(EXAMPLE.glob("*.yaml"))]
    loaded = itertools.chain.from_iterable(map(yaml.safe_load_all, texts))
    return tuple(raw for raw in loaded if raw)


def flights(number: int) -> list[Raw]:
    """A copy of the example in which every name of a resource has a number."""
    names = {raw["metadata"]["name"] for raw in examples()}
    found: list[Raw] = []
    for raw in examples():
        new: Raw = _renamed(raw, names, number)
        for used in new["spec"].get("dataModel", {}).get("dataRelationships", ()):
            used["name"] = f"{used['name']}-{number}"
        new["metadata"] = {"name": f"{raw['metadata']['name']}-{number}"}
        found.append(new)
    return found


def suspended(raw: Raw) -> Raw:
    """The same without runs: what runs jobs only plans."""
    if raw["kind"] not in ("OutputDataset", "SkippingIndex"):
        return raw
    return {**raw, "spec": {**raw["spec"], "run": {"suspend": True}}}


def _renamed(value: Any, names: set[str], number: int, key: str = "") -> Any:
    if isinstance(value, dict):
        return {k: _renamed(inner, names, number, k) for k, inner in value.items()}
    if isinstance(value, list):
        return [_renamed(inner, names, number, key) for inner in value]
    if key == "folderUri":
        return f"{value}{number}/"
    is_name = isinstance(value, str) and value in names and key not in NOT_NAMES
    return f"{value}-{number}" if is_name else value
