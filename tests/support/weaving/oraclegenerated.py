"""Random small worlds for the oracle, in which most things go well and everything may go wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, TypeVar

from support.weaving.oracleworld import (
    EXPRESSIONS,
    PAIR,
    QUERIES,
    SPARK_NAMES,
    Change,
    Child,
    Column,
    Component,
    Relationship,
    Row,
    Selector,
    Source,
    Table,
    World,
)

MOST_CHILDREN = 3
LAST_DAY = 5
TYPES = tuple(SPARK_NAMES)
VALUES: dict[str, Sequence[Any]] = {
    "string": ("1", "0", "01", " 2", "x"),
    "integer": (1, 0, 2),
    "long": (1, 0, 2),
    "double": (1.0, 0.0, 1.5),
}
FIELD_NAMES = ("zebra", "Alpha", "middle")
"""In an order that is not that of the sources, and neither of their letters' codes."""
MODES = ("CONTINUE_IGNORE", "CONTINUE_WARN", "SKIP_IGNORE", "SKIP_WARN", "ERROR")
INCLUDED = ("^old_", "^k", "0a$", "^v$", "a")
EXCLUDED = ("^(row|k)", "^(row|day)$", "^(row|v|day)$")
PATTERNS = (("^old_", ""), ("^old_", ""), (r"^k(\d)(.)$", "$2_$1"), ("^v", "w"))
"""Columns called `row` are selected by no expression: no snapshot is ever without columns."""

Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Dice:
    """Decisions that a seed makes."""

    random: Random

    def one(self, things: Sequence[Thing]) -> Thing:
        return self.random.choice(things)

    def number(self, least: int, most: int) -> int:
        return self.random.randint(least, most)

    def happens(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0


def world_of(seed: int) -> World:
    """A root and one to three children, each of which can be reached unless it is unlucky."""
    dice = Dice(Random(seed))
    count = dice.number(1, MOST_CHILDREN)
    names = [f"s{number}" for number in range(count + 1)]
    relationships = [_relationship(dice, number, names) for number in range(1, count + 1)]
    names_of_fields = list(FIELD_NAMES[:count])
    children = [
        _child(dice, names[number], names_of_fields[number - 1], relationships)
        for number in range(1, count + 1)
    ]
    grouped = {child.source for child in children if child.group_by}
    sources = {
        name: _source(dice, name, relationships, name == names[0] or name in grouped)
        for name in names
    }
    return World(
        sources,
        tuple(relationships),
        names[0],
        tuple(children),
        length=dice.number(1, 2),
        preference=dice.one(("NEWEST", "OLDEST")),
        catchup=dice.one(("OLDEST_FIRST", "NEWEST_FIRST")),
        incompatible=dice.one(("WARN", "FAIL")),
        runs=dice.one(((LAST_DAY,), (3, LAST_DAY))),
    )


def _relationship(dice: Dice, number: int, names: list[str]) -> Relationship:
    """The key by which one source is joined to an earlier one, and sometimes to others."""
    members = {names[number], names[dice.number(0, number - 1)]}
    if dice.happens(6):
        members.add(dice.one(names))
    parts = dice.one((1, 1, 1, 2))
    casts = tuple(dice.one(("long", *TYPES)) for _ in range(parts))
    usual = dice.one(("long", "long", *TYPES))
    keys = {name: _key(dice, number, parts, usual) for name in sorted(members)}
    exclusions = (tuple(sorted(members)[:2]),) if dice.happens(10) else ()
    return Relationship(f"r{number}", keys, casts, dice.number(1, 3), exclusions)


def _key(dice: Dice, number: int, parts: int, usual: str) -> tuple[Component, ...]:
    components = []
    for part in "ab"[:parts]:
        own = dice.one(TYPES) if dice.happens(6) else usual
        fields: tuple[tuple[str, str], ...] = ((f"k{number}{part}", own),)
        query = None
        if dice.happens(5) and QUERIES[own]:
            query = dice.one(QUERIES[own])
        elif dice.happens(12):
            fields, query = (*fields, (f"k{number}{part}x", dice.one(TYPES))), PAIR
        components.append(Component(fields, query))
    return tuple(components)


def _child(dice: Dice, source: str, field_name: str, relationships: list[Relationship]) -> Child:
    group_by: list[str] = []
    if dice.happens(2):
        number = int(source[1:]) - 1
        keys = dice.one((relationships[number], relationships[number], *relationships)).keys
        components = keys.get(source, relationships[number].keys[source])
        group_by = [name for component in components for name, _ in component.fields]
        if dice.happens(4):
            group_by = [name.upper() for name in reversed(group_by)]
    return Child(
        source,
        field_name,
        tuple(group_by),
        path_mode=dice.one(("ERROR", "CONTINUE_IGNORE", "CONTINUE_WARN")),
        join_mode=dice.one(MODES),
        group_mode=dice.one(MODES),
        snapshot_mode=dice.one(MODES),
        preference=dice.one(("NEWEST", "OLDEST")),
        before=dice.one((LAST_DAY, 2, 1, 0)),
        after=dice.one((0, 1)),
    )


def _source(dice: Dice, name: str, relationships: list[Relationship], may_repeat: bool) -> Source:
    declared = {
        field: kind
        for relationship in relationships
        for component in relationship.keys.get(name, ())
        for field, kind in component.fields
    }
    columns = [Column("row", "long")]
    columns += [Column(field, kind, dice.happens(3)) for field, kind in declared.items()]
    columns.append(Column("v", dice.one(TYPES)))
    days = [day for day in range(1, LAST_DAY + 1) if dice.happens(2)]
    if not days or not dice.happens(3):
        days = [1, *days]
    snapshots = {day: _table(dice, columns, may_repeat) for day in days}
    changes = [_change(dice, declared) for _ in range(dice.one((0, 1, 1, 2)))]
    return Source(snapshots, tuple(changes), dice.happens(4))


def _table(dice: Dice, usual: list[Column], may_repeat: bool) -> Table:
    columns = list(usual)
    if dice.happens(3):
        at = dice.number(1, len(columns) - 1)
        column = columns[at]
        match dice.one(("old", "absent", "case", "type")):
            case "old":
                columns[at] = replace(column, name=f"old_{column.name}")
            case "case":
                columns[at] = replace(column, name=column.name.upper())
            case "type":
                columns[at] = replace(column, type=dice.one(TYPES))
            case _:
                del columns[at]
    count = dice.one((2, 3, 4, 1, 0))
    values = {column.name: _values(dice, column, count, may_repeat) for column in columns}
    rows: list[Row] = [{name: each[at] for name, each in values.items()} for at in range(count)]
    return Table(tuple(columns), tuple(rows))


def _values(dice: Dice, column: Column, count: int, may_repeat: bool) -> list[Any]:
    if column.name == "row":
        return list(range(count))
    pool = VALUES[column.type]
    if may_repeat or dice.happens(20):
        return [dice.one((*pool, None)) for _ in range(count)]
    return [*pool, None, None][:count]


def _change(dice: Dice, declared: dict[str, str]) -> Change:
    """Often one that corrects what is unusual in a snapshot, else anything."""
    first = dice.one((None, None, 2, 3))
    end = dice.one((None, None, 4, 5))
    if dice.happens(2) and declared:
        field = dice.one(sorted(declared))
        if dice.happens(2):
            selector = Selector(include=f"^old_{field}$")
            return Change("to", field, (selector,), not dice.happens(3), first, end)
        return Change(
            "cast", declared[field], (Selector(include=f"(?i)^{field}$"),), True, first, end
        )
    kind = dice.one(("pattern", "pattern", "cast", "expression", "drop", "to"))
    value = {
        "pattern": lambda: dice.one(PATTERNS),
        "cast": lambda: dice.one(TYPES),
        "expression": lambda: dice.one(EXPRESSIONS),
        "drop": lambda: None,
        "to": lambda: dice.one(("V", "copy", "k1a")),
    }[kind]()
    is_rename = kind in ("pattern", "to")
    selectors = tuple(_selector(dice) for _ in range(dice.number(1, 2)))
    return Change(kind, value, selectors, not (is_rename and dice.happens(3)), first, end)


def _selector(dice: Dice) -> Selector:
    match dice.one(("include", "include", "exclude", "both", "marked")):
        case "include":
            return Selector(dice.one(INCLUDED))
        case "exclude":
            return Selector(None, dice.one(EXCLUDED))
        case "both":
            return Selector(dice.one(INCLUDED), dice.one(EXCLUDED))
    return Selector(is_marked=True)
