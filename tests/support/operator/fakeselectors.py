"""Label selectors as the API server reads them, for clusters that are not there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

Labels = Mapping[str, str]
Test = Callable[[Labels], bool]

_SET = re.compile(r"^(?P<key>[\w./-]+)\s+(?P<how>in|notin)\s*\((?P<values>[^)]*)\)$")
_EQUAL = re.compile(r"^(?P<key>[\w./-]+)\s*(?P<how>=|==|!=)\s*(?P<value>[\w.-]*)$")
_EXISTS = re.compile(r"^(?P<not>!?)(?P<key>[\w./-]+)$")


def selects(selector: str) -> Test:
    """Whether labels satisfy every requirement of a selector.

    Raises:
        ValueError: it is none.
    """
    tests = [_requirement(part.strip()) for part in _parts(selector)]
    return lambda labels: all(test(labels) for test in tests)


def _parts(selector: str) -> list[str]:
    return re.split(r",(?![^(]*\))", selector) if selector else []


def _requirement(text: str) -> Test:
    if match := _SET.match(text):
        key, values = match["key"], {value.strip() for value in match["values"].split(",")}
        if match["how"] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if match := _EQUAL.match(text):
        key, value = match["key"], match["value"]
        if match["how"] == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if match := _EXISTS.match(text):
        key, is_wanted = match["key"], not match["not"]
        return lambda labels: (key in labels) == is_wanted
    raise ValueError(f"no label selector: {text}")
