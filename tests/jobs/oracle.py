"""The rules of weaving, carried out by plain Python: what a run over a small world must publish.

It follows the rules of docs/design/weaving.md on lists and dictionaries: it knows nothing of
Snaploom's modules, enumerates where they compute, and joins by comparing every row with every row.

Small worlds of sources, relationships and an output, as plain data that tests make and change.

Times are days of January 2024, at midnight UTC. What the declarations of a world contain is in
`oracledeclarations`, what comes of it in `oracle`, and random worlds in `oraclegenerated`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

Row = Mapping[str, Any]

SPARK_NAMES = {"string": "string", "integer": "int", "long": "bigint", "double": "double"}
"""Types of columns, as declarations and as Spark call them."""

DAY_COLUMN = "day"
"""Column that every source takes from its paths: the time of the snapshot, such as 2024-01-02."""

EXPRESSIONS = (
    "upper(cast(value AS string))",
    "try_cast(value AS bigint) * 10",
    "length(cast(value AS string))",
    "concat('0', cast(value AS string))",
    "nullif(cast(value AS string), '1')",
)
"""What expressions of transformers are: each takes a value of any type."""

QUERIES: Mapping[str, Sequence[str]] = {
    "string": ("trim({0})", "upper({0})"),
    "integer": ("{0} % 2",),
    "long": ("{0} % 2",),
    "double": (),
}
"""Queries of key components over one field, by its type."""

PAIR = "concat(cast({0} AS string), '-', cast({1} AS string))"
"""Query of a key component over two fields of any type."""


@dataclass(frozen=True)
class Column:
    name: str
    type: str
    is_marked: bool = False
    """Whether its metadata contains `role: key`."""


@dataclass(frozen=True)
class Table:
    """One snapshot of a source."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Selector:
    """Which columns a change is about."""

    include: str | None = None
    exclude: str | None = None
    is_marked: bool = False
    """Whether only columns with `role: key` are meant."""


@dataclass(frozen=True)
class Change:
    """One entry of a FieldTransformer."""

    kind: str
    """`to`, `pattern`, `cast`, `expression` or `drop`."""
    value: Any
    """New name, (pattern, replacement), type, SQL, or None."""
    selectors: tuple[Selector, ...]
    replaces: bool = True
    first: int | None = None
    end: int | None = None
    """Days of the snapshotRange, half-open."""


@dataclass(frozen=True)
class Source:
    """A source, by day of its snapshots."""

    snapshots: Mapping[int, Table]
    changes: tuple[Change, ...] = ()
    keeps_day: bool = False
    """Whether `dropField` is false."""


@dataclass(frozen=True)
class Component:
    """One component of a key as one source writes it."""

    fields: tuple[tuple[str, str], ...]
    """Names and declared types."""
    query: str | None = None
    """With `{0}` and `{1}` for the fields."""


@dataclass(frozen=True)
class Relationship:
    """A key that sources share."""

    name: str
    keys: Mapping[str, tuple[Component, ...]]
    casts: tuple[str, ...]
    """`castDataType` of each component."""
    anti_priority: int = 1
    exclusions: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Child:
    """A source that the output joins."""

    source: str
    field_name: str
    group_by: tuple[str, ...] = ()
    path_mode: str = "ERROR"
    join_mode: str = "ERROR"
    group_mode: str = "ERROR"
    snapshot_mode: str = "ERROR"
    preference: str = "NEWEST"
    before: int = 0
    after: int = 0
    """Days of the window around the root's snapshot."""


@dataclass(frozen=True)
class World:
    """Everything that a few runs of one output see."""

    sources: Mapping[str, Source]
    relationships: tuple[Relationship, ...]
    root: str
    children: tuple[Child, ...]
    length: int = 1
    """Days of an interval; the first begins at day 1."""
    preference: str = "NEWEST"
    catchup: str = "OLDEST_FIRST"
    incompatible: str = "FAIL"
    runs: tuple[int, ...] = (20,)
    """Days at noon of which a run is made."""


@dataclass(frozen=True)
class Snapshot:
    """What is published of one day."""

    schema: str
    """As Spark's `simpleString`."""
    rows: list[dict[str, Any]]
    excluded: Mapping[str, str]
    """Reasons by field name, of sources that are in the tree and not in the snapshot."""


@dataclass(frozen=True)
class Outcome:
    """What a run has done."""

    is_refused: bool = False
    """Whether the declarations have no unique tree that reaches every source."""
    published: Mapping[int, Snapshot] = field(default_factory=dict)
    skipped: Mapping[int, str] = field(default_factory=dict)
    """Reasons by day."""
    failed: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """Reasons by day, of which one is reported."""


NO_UNIQUE_TREE = None
_INTEGERS = {"integer", "long"}


class Failed(Exception):
    """A snapshot that cannot be published; a run reports one of the reasons."""

    def __init__(self, *reasons: str) -> None:
        super().__init__(*reasons)
        self.reasons = frozenset(reasons)


class Skipped(Exception):
    """A snapshot that a mode leaves out."""


@dataclass(frozen=True)
class Node:
    """A source in the tree."""

    child: Child
    parent: str
    """Source."""
    relationship: Relationship
    depth: int


Tree = Sequence[Node]
"""In breadth-first order, without the root."""


def outcomes(world: World) -> list[Outcome]:
    tree = tree_of(world)
    if tree is NO_UNIQUE_TREE:
        return [Outcome(is_refused=True) for _ in world.runs]
    lost = _lost(world, tree)
    live: dict[int, Snapshot] = {}
    found = []
    for now in world.runs:
        outcome = _run(world, tree, now, live, lost)
        live |= outcome.published
        found.append(outcome)
    return found


def tree_of(world: World) -> Tree | None:
    """The tree of least total depth, and of least anti-priority among those, by trying them all."""
    arcs = {child.source: list(_arcs_into(world, child)) for child in world.children}
    reached = {world.root}
    while new := {v for v, ways in arcs.items() if v not in reached and _from(ways) & reached}:
        reached |= new
    lost = [child for child in world.children if child.source not in reached]
    if any(child.path_mode == "ERROR" for child in lost):
        return NO_UNIQUE_TREE
    children = [child for child in world.children if child.source in reached]
    ways = [[arc for arc in arcs[child.source] if arc[0] in reached] for child in children]
    trees: list[tuple[tuple[int, int], Tree]] = []
    for chosen in product(*ways):
        parents = {c.source: arc[0] for c, arc in zip(children, chosen, strict=True)}
        depths = {source: _depth(source, parents, world.root) for source in parents}
        if None in depths.values():
            continue
        nodes = [
            Node(c, arc[0], arc[1], depths[c.source] or 0)
            for c, arc in zip(children, chosen, strict=True)
        ]
        cost = sum(n.depth for n in nodes), sum(n.relationship.anti_priority for n in nodes)
        trees.append((cost, nodes))
    least = min(cost for cost, _ in trees)
    best = [nodes for cost, nodes in trees if cost == least]
    return _breadth_first(best[0], world.root) if len(best) == 1 else NO_UNIQUE_TREE


def _arcs_into(world: World, child: Child) -> Iterator[tuple[str, Relationship]]:
    listed = {world.root, *(c.source for c in world.children)}
    for relationship in world.relationships:
        if child.source not in relationship.keys:
            continue
        names = {n.lower() for part in relationship.keys[child.source] for n, _ in part.fields}
        if child.group_by and {name.lower() for name in child.group_by} != names:
            continue
        for parent in relationship.keys.keys() & listed - {child.source}:
            pair = {parent, child.source}
            if not any(pair <= set(excluded) for excluded in relationship.exclusions):
                yield parent, relationship


def _from(ways: list[tuple[str, Relationship]]) -> set[str]:
    return {parent for parent, _ in ways}


def _depth(source: str, parents: Mapping[str, str], root: str) -> int | None:
    depth = 0
    while source != root:
        source, depth = parents[source], depth + 1
        if depth > len(parents):
            return None
    return depth


def _breadth_first(nodes: Tree, root: str) -> Tree:
    ordered: list[Node] = []
    parents = [root]
    while parents:
        parent = parents.pop(0)
        below = [node for node in nodes if node.parent == parent]
        below.sort(key=lambda node: node.child.field_name.lower())
        ordered += below
        parents += [node.child.source for node in below]
    return ordered


def _lost(world: World, tree: Tree) -> dict[str, str]:
    found = {node.child.field_name for node in tree}
    names = (child.field_name for child in world.children)
    return {name: "PATH_MISSING" for name in names if name not in found}


def _run(
    world: World, tree: Tree, now: int, live: Mapping[int, Snapshot], lost: Mapping[str, str]
) -> Outcome:
    planned: dict[int, Mapping[str, int]] = {}
    missing: dict[int, Mapping[str, str]] = {}
    skipped: dict[int, str] = {}
    failed: dict[int, frozenset[str]] = {}
    for day in _candidates(world, now, live):
        try:
            planned[day], missing[day] = _available(world, tree, day)
        except Skipped as reason:
            skipped[day] = str(reason)
        except Failed as failure:
            failed[day] = failure.reasons
    due = sorted(planned, reverse=world.catchup == "NEWEST_FIRST")
    published: dict[int, Snapshot] = {}
    for day in due:
        if failed:
            skipped[day] = "EARLIER_FAILURE"
            continue
        try:
            known = {**live, **published}
            snapshot = _woven(world, tree, planned[day], missing[day], known)
            published[day] = replace(snapshot, excluded={**lost, **snapshot.excluded})
        except Skipped as reason:
            skipped[day] = str(reason)
        except Failed as failure:
            failed[day] = failure.reasons
    return Outcome(False, published, skipped, failed)


def _candidates(world: World, now: int, live: Mapping[int, Snapshot]) -> list[int]:
    def interval(day: int) -> int:
        return (day - 1) // world.length

    done = {interval(day) for day in live}
    by_interval: dict[int, list[int]] = {}
    for day in world.sources[world.root].snapshots:
        if day <= now and interval(day) not in done:
            by_interval.setdefault(interval(day), []).append(day)
    choose = max if world.preference == "NEWEST" else min
    return sorted(choose(days) for days in by_interval.values())


def _available(world: World, tree: Tree, day: int) -> tuple[Mapping[str, int], Mapping[str, str]]:
    """By source, the day of the snapshot taken; by field name, why there is none."""
    taken = {world.root: day}
    excluded: dict[str, str] = {}
    for node in tree:
        child = node.child
        if node.parent not in taken:
            excluded[child.field_name] = "PARENT_EXCLUDED"
            continue
        days = [
            each
            for each in world.sources[child.source].snapshots
            if day - child.before <= each <= day + child.after
        ]
        if days:
            taken[child.source] = max(days) if child.preference == "NEWEST" else min(days)
        else:
            excluded[child.field_name] = _missing(child.snapshot_mode, "SNAPSHOT_MISSING")
    return taken, excluded


def _missing(mode: str, reason: str) -> str:
    if mode == "ERROR":
        raise Failed(reason)
    if mode.startswith("SKIP"):
        raise Skipped(reason)
    return reason


def _woven(
    world: World,
    tree: Tree,
    taken: Mapping[str, int],
    missing: Mapping[str, str],
    live: Mapping[int, Snapshot],
) -> Snapshot:
    root = transformed(world.sources[world.root], taken[world.root])
    tables = {world.root: root}
    excluded = dict(missing)
    for node in tree:
        child = node.child
        if child.field_name in excluded:
            continue
        if node.parent not in tables:
            excluded[child.field_name] = "PARENT_EXCLUDED"
            continue
        table = transformed(world.sources[child.source], taken[child.source])
        reason = _field_missing(node, tables[node.parent], table)
        if reason is None:
            tables[child.source] = table
        else:
            mode = child.join_mode if reason == "JOIN_FIELD_MISSING" else child.group_mode
            excluded[child.field_name] = _missing(mode, reason)
    reasons = []
    schema = _schema(tree, tables, world.root)
    if world.incompatible == "FAIL" and any(
        not _agree(schema, snapshot.schema) for snapshot in live.values()
    ):
        reasons.append("HISTORY_INCOMPATIBLE")
    try:
        rows = _joined(tree, tables, world.root)
    except Failed as failure:
        reasons += failure.reasons
    if reasons:
        raise Failed(*reasons)
    return Snapshot(schema, rows, excluded)


def _field_missing(node: Node, parent: Table, own: Table) -> str | None:
    own_types = {column.name.lower(): column.type for column in own.columns}
    if any(name.lower() not in own_types for name in node.child.group_by):
        return "GROUP_BY_FIELD_MISSING"
    parent_types = {column.name.lower(): column.type for column in parent.columns}
    keys = node.relationship.keys
    for types, components in (
        (parent_types, keys[node.parent]),
        (own_types, keys[node.child.source]),
    ):
        for component, wanted in zip(components, node.relationship.casts, strict=True):
            for name, declared in component.fields:
                found = types.get(name.lower())
                if found is None or not _serves(declared, found, component, wanted):
                    return "JOIN_FIELD_MISSING"
    return None


def _serves(declared: str, found: str, component: Component, wanted: str) -> bool:
    if declared == found or (found == "integer" and declared in ("long", "double")):
        return True
    is_whole = {declared, found} <= _INTEGERS
    return is_whole and (component.query is not None or wanted in ("long", "string"))


def transformed(source: Source, day: int) -> Table:
    """A snapshot as it is after all changes, without the snapshot's own column."""
    table = source.snapshots[day]
    columns = (*table.columns, Column(DAY_COLUMN, "string"))
    rows = [{**row, DAY_COLUMN: f"2024-01-{day:02d}"} for row in table.rows]
    table, own = Table(columns, tuple(rows)), DAY_COLUMN
    for change in source.changes:
        if (change.first is None or change.first <= day) and (
            change.end is None or day < change.end
        ):
            table, own = _changed(table, change, own)
    if source.keeps_day or not own:
        return table
    return _only(table, [column for column in table.columns if column.name != own])


def _changed(table: Table, change: Change, own: str) -> tuple[Table, str]:
    made: list[tuple[Column, list[Any]]] = []
    followed = own
    for column in table.columns:
        values = [row[column.name] for row in table.rows]
        if not any(_selects(selector, column) for selector in change.selectors):
            made.append((column, values))
        elif change.kind in ("to", "pattern"):
            name = _renamed(column.name, change)
            if name == column.name or not change.replaces:
                made.append((column, values))
            if name != column.name:
                made.append((replace(column, name=name), values))
                if column.name == own and change.replaces:
                    followed = name
        elif change.kind == "cast":
            cast_values = [cast(value, change.value) for value in values]
            made.append((replace(column, type=change.value), cast_values))
        elif change.kind == "expression":
            new_type, computed = _expression(change.value, values)
            made.append((replace(column, type=new_type), computed))
        elif column.name == own:
            followed = ""
    names = [column.name.lower() for column, _ in made]
    if len(set(names)) < len(names):
        raise Failed("SOURCE_FAILED")
    rows = tuple(
        {column.name: values[at] for column, values in made} for at in range(len(table.rows))
    )
    return Table(tuple(column for column, _ in made), rows), followed


def _selects(selector: Selector, column: Column) -> bool:
    if selector.exclude is not None and re.search(selector.exclude, column.name):
        return False
    if selector.include is not None and not re.search(selector.include, column.name):
        return False
    return column.is_marked or not selector.is_marked


def _renamed(name: str, change: Change) -> str:
    if change.kind == "to":
        return str(change.value)
    pattern, replacement = change.value
    return re.sub(pattern, re.sub(r"\$(\d)", r"\\\1", replacement), name)


def _expression(sql: str, values: list[Any]) -> tuple[str, list[Any]]:
    upper, tenfold, length, padded, unless_one = EXPRESSIONS
    if sql == tenfold:
        numbers = [cast(value, "long") for value in values]
        return "long", [None if number is None else number * 10 for number in numbers]
    texts = [cast(value, "string") for value in values]
    if sql == length:
        return "integer", [None if text is None else len(text) for text in texts]
    of_text = {
        upper: lambda text: text.upper(),
        padded: lambda text: "0" + text,
        unless_one: lambda text: None if text == "1" else text,
    }[sql]
    return "string", [None if text is None else of_text(text) for text in texts]


def cast(value: Any, wanted: str) -> Any:
    """A value in another type; None where it has no meaning there."""
    if value is None or wanted == "string":
        return None if value is None else str(value)
    if wanted in _INTEGERS:
        if isinstance(value, str):
            text = value.strip()
            return int(text) if re.fullmatch(r"[+-]?\d+", text) else None
        return int(value)
    try:
        return float(value)
    except ValueError:
        return None


def _only(table: Table, columns: list[Column]) -> Table:
    names = [column.name for column in columns]
    return Table(tuple(columns), tuple({name: row[name] for name in names} for row in table.rows))


def _joined(tree: Tree, tables: Mapping[str, Table], source: str) -> list[dict[str, Any]]:
    below = [node for node in tree if node.parent == source and node.child.source in tables]
    woven = {node.child.source: _joined(tree, tables, node.child.source) for node in below}
    result = []
    for row in tables[source].rows:
        packed: dict[str, Any] = {"data": dict(row)}
        for node in below:
            child, relationship = node.child, node.relationship
            key = _key(relationship, source, row)
            found = [
                other
                for other in woven[child.source]
                if None not in key and _key(relationship, child.source, other["data"]) == key
            ]
            if child.group_by:
                packed[child.field_name] = found or None
            elif len(found) > 1:
                raise Failed("ROWS_MULTIPLIED")
            else:
                packed[child.field_name] = found[0] if found else None
        result.append(packed)
    return result


def _key(relationship: Relationship, source: str, row: Row) -> list[Any]:
    by_name = {name.lower(): value for name, value in row.items()}
    return [
        cast(_value(component, by_name), wanted)
        for component, wanted in zip(relationship.keys[source], relationship.casts, strict=True)
    ]


def _value(component: Component, row: Row) -> Any:
    values = [cast(row[name.lower()], declared) for name, declared in component.fields]
    if None in values:
        return None
    match component.query:
        case None:
            return values[0]
        case "trim({0})":
            return values[0].strip(" ")
        case "upper({0})":
            return values[0].upper()
        case "{0} % 2":
            return values[0] % 2
        case query if query == PAIR:
            return "-".join(cast(value, "string") for value in values)
    raise AssertionError(component.query)


def _schema(tree: Tree, tables: Mapping[str, Table], source: str) -> str:
    own = ",".join(f"{column.name}:{SPARK_NAMES[column.type]}" for column in tables[source].columns)
    parts = [f"data:struct<{own}>"]
    below = [node for node in tree if node.parent == source and node.child.source in tables]
    for node in sorted(below, key=lambda node: node.child.field_name.lower()):
        inner = _schema(tree, tables, node.child.source)
        parts.append(
            f"{node.child.field_name}:" + (f"array<{inner}>" if node.child.group_by else inner)
        )
    return f"struct<{','.join(parts)}>"


def _agree(one: str, other: str) -> bool:
    """Whether no column has types in the two that one of them does not widen to."""
    mine, theirs = _types(one), _types(other)
    return all(
        mine[name] == theirs[name] or {mine[name], theirs[name]} == {"int", "bigint"}
        for name in mine.keys() & theirs.keys()
    )


def _types(schema: str) -> dict[tuple[str, ...], str]:
    """Types of the columns by path, ignoring case."""
    found: dict[tuple[str, ...], str] = {}
    path: list[str] = []
    for name, opened, leaf, closed in re.findall(
        r"(\w+):(?:((?:array<)?struct<)|(\w+))|(>+)", schema.removeprefix("struct<")
    ):
        if opened:
            path += [name.lower()] + ["[]"] * opened.startswith("array")
        elif leaf:
            found[*path, name.lower()] = leaf
        else:
            del path[max(0, len(path) - len(closed)) :]
    return found
