"""Compares what a contract promises with what is published and declared; pure.

Both sides are contracts: the given one, and the one that would be written now. Compared is what
Snaploom knows of: columns and their types, keys, partition, checks, service levels and sources.
Everything else in a contract (people, prices, descriptions) is not compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from pydantic import JsonValue

from snaploom.jobs.contracts.contractdocument import DATA, ENGINE
from snaploom.planning.fieldpaths import path_text

_TYPES = ("physicalType", "logicalType")
_FLAGS = ("primaryKey", "primaryKeyPosition", "partitioned", "partitionKeyPosition")
_SOURCES = "transformSourceObjects"


class Verdict(StrEnum):
    """Meaning of a difference."""

    BROKEN = "BROKEN"
    """The contract promises what is not so."""
    UNSTATED = "UNSTATED"
    """It is so, and the contract does not state it."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """One difference between a contract and its output."""

    verdict: Verdict
    """Its meaning."""
    subject: str
    """Column, check or service level."""
    promised: str
    """Statement of the contract; empty without one."""
    found: str
    """Fact about the output; empty without one."""

    @property
    def document(self) -> JsonValue:
        """For programs."""
        return {
            "verdict": self.verdict.value,
            "subject": self.subject,
            "promised": self.promised,
            "found": self.found,
        }

    def __str__(self) -> str:
        if self.verdict is Verdict.UNSTATED:
            return f"+ {self.subject}: {self.found}, which the contract does not mention"
        return f"! {self.subject}: promised {self.promised}, found {self.found or 'nothing'}"


Statements = Mapping[str, str]
"""Statements of a contract, by subject."""


def deviations(
    contract: Mapping[str, JsonValue], current: Mapping[str, JsonValue]
) -> tuple[Deviation, ...]:
    """All differences, those that break the contract first.

    Args:
        contract: what is promised; valid by the standard.
        current: the contract that would be written now.
    """
    promised, found = statements(contract, current), statements(current, current)
    broken = [
        Deviation(Verdict.BROKEN, subject, text, found.get(subject, ""))
        for subject, text in promised.items()
        if found.get(subject) != text
    ]
    unstated = [
        Deviation(Verdict.UNSTATED, subject, "", text)
        for subject, text in found.items()
        if subject not in promised and not _is_below_unstated(subject, promised, found)
    ]
    return (*broken, *unstated)


def statements(document: Mapping[str, JsonValue], current: Mapping[str, JsonValue]) -> Statements:
    """Statements of a contract about the output that another one describes.

    Args:
        document: the contract; of its objects, the one with the output's name counts.
        current: describes the output.
    """
    found: dict[str, str] = {}
    name = _table(current, "").get("name")
    table = _table(document, str(name))
    found.update(_columns(_list(table, "properties"), ()))
    for check in _list(table, "quality"):
        if check.get("engine") == ENGINE:
            found[f"check {check.get('name')}"] = _compact(check.get("implementation"))
    for level in _list(document, "slaProperties"):
        if level.get("property") in ("frequency", "latency", "retention"):
            found[f"service level {level['property']}"] = " ".join(
                str(level[key]) for key in ("value", "unit") if level.get(key) is not None
            )
    return found


def _is_below_unstated(subject: str, promised: Statements, found: Statements) -> bool:
    """Whether a column is part of one that is reported already."""
    if not subject.startswith("column "):
        return False
    path = subject.removeprefix("column ")
    return any(
        other.startswith("column ")
        and path.startswith(f"{other.removeprefix('column ')}.")
        and other not in promised
        for other in found
    )


def _table(document: Mapping[str, JsonValue], name: str) -> Mapping[str, JsonValue]:
    """The object of a name; the first without."""
    tables = _list(document, "schema")
    return next((table for table in tables if name in ("", table.get("name"))), {})


def _columns(
    properties: list[Mapping[str, JsonValue]], above: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    for each in properties:
        path = (*above, str(each.get("name")))
        name = path_text(path).casefold()
        kind = next((str(each[key]) for key in _TYPES if each.get(key)), "any type")
        yield f"column {name}", kind.replace(" ", "").lower()
        flags = [f"{key} {each[key]}" for key in _FLAGS if each.get(key) not in (None, False, -1)]
        if flags:
            yield f"key of {name}", ", ".join(flags)
        sources = each.get(_SOURCES)
        if isinstance(sources, list) and sources and path[-1] == DATA:
            yield f"sources of {name}", ", ".join(sorted(map(str, sources)))
        yield from _columns(_list(each, "properties"), path)
        items = each.get("items")
        while isinstance(items, dict):
            yield from _columns(_list(items, "properties"), path)
            items = items.get("items")


def _list(document: Mapping[str, JsonValue], key: str) -> list[Mapping[str, JsonValue]]:
    found = document.get(key)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _compact(value: JsonValue) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
