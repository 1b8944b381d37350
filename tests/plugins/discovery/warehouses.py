"""Warehouses by chance: facts, aggregates, copies and measures, and keys that all count from 1."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from support.discovery.datasetfiles import DataSet, Link, Row, Table

DIMENSIONS = {
    "customer": "cust", "product": "prod", "store": "store", "employee": "emp",
    "department": "dept", "warehouse": "whse", "promotion": "promo", "region": "reg",
    "supplier": "supp", "account": "acct", "category": "cat", "position": "pos", "vehicle": "veh",
    "patient": "pat", "ward": "ward", "route": "route", "calendar": "cal", "station": "stn",
    "course": "crs", "customer_group": "cust_grp", "store_type": "store_type",
    "product_class": "prod_class", "payment_method": "pay_method", "sales_channel": "channel",
}  # fmt: skip
"""Names of tables with their abbreviations in keys."""
FACTS = ("sales", "orders", "visits", "shipments", "readings", "claims", "inventory", "bookings")
ROLES = ("bill", "ship", "home", "primary", "origin", "previous", "preferred")
MEASURES = (
    "quantity", "units", "w", "l", "hr", "score", "age", "num_children", "total_children", "rank",
    "level", "year", "month", "week_of_year", "cars_owned", "visits_count", "order_count",
    "days_open", "units_ordered", "units_shipped", "supply_time", "capacity", "attempts", "floor",
)  # fmt: skip
AROUND = (
    "{}_count", "{}_sales", "{}_cost", "num_{s}", "{}_days", "{}_rank", "total_{}", "{}_size",
    "number_of_{s}", "{}_units", "{s}_visited", "max_{}", "{}_age",
)  # fmt: skip
"""Measures that have the name of a table."""
FLAGS = ("is_active", "paid", "coffee_bar", "married", "checked", "low_fat")
NAMELESS = ("stocks_for", "the_id", "link", "code1", "held_at", "ref")
"""References that only a person knows."""


@dataclass
class _Made:
    tables: dict[str, list[Row]] = field(default_factory=dict)
    keys: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Of each dimension its key and its rows."""
    truth: set[Link] = field(default_factory=set)
    right: set[Link] = field(default_factory=set)


@dataclass(frozen=True)
class _Style:
    key: str
    table: str
    is_short: bool

    def table_of(self, name: str) -> str:
        return {"camel": _camel(name), "dim": f"dim_{name}", "plural": _plural(name)}.get(
            self.table, name
        )

    def base(self, name: str) -> str:
        return DIMENSIONS[name] if self.is_short else name

    def key_of(self, name: str) -> str:
        if self.key == "id":
            return "id"
        return self.column(self.base(name))

    def column(self, words: str) -> str:
        if self.key == "camel":
            return f"{_camel(words)}Id"
        return f"{words}_{'id' if self.key == 'id' else self.key}"


def warehouse(seed: int) -> DataSet:
    """Dimensions that count from 1, one or two facts, and what misleads beside them."""
    chance = random.Random(seed)
    style = _Style(
        key=chance.choice(("id", "camel", "key", "sk", "no", "named_id")).replace("named_", ""),
        table=chance.choice(("plain", "camel", "dim", "plural")),
        is_short=chance.random() < 0.4,
    )
    if chance.random() < 0.3:
        style = _Style("named", style.table, style.is_short)
    made = _Made()
    names = chance.sample(sorted(DIMENSIONS), chance.randint(4, 9))
    for name in names:
        made.keys[name] = (
            f"{style.base(name)}_id" if style.key == "named" else style.key_of(name),
            chance.choice((3, 8, 24, 70, 200, 800)),
        )
    for place, name in enumerate(names):
        _dimension(chance, style, made, name, names[:place])
    for fact in chance.sample(FACTS, chance.randint(1, 2)):
        _fact(chance, style, made, fact, names)
    tables = [Table(name, f"{name}.csv", [rows]) for name, rows in made.tables.items()]
    return DataSet(f"warehouse {seed}", tables, frozenset(made.truth), frozenset(made.right))


def _reference(style: _Style, name: str, role: str = "") -> str:
    words = "_".join(filter(None, (role, style.base(name))))
    return f"{words}_id" if style.key == "named" else style.column(words)


def _dimension(
    chance: random.Random, style: _Style, made: _Made, name: str, known: list[str]
) -> None:
    key, size = made.keys[name]
    table = style.table_of(name)
    rows: list[Row] = [{key: n, "name": f"{name} {n}"} for n in range(1, size + 1)]
    if size > 20 and chance.random() < 0.3:
        parent = chance.choice(("parent", "parent_" + style.base(name)))
        column = f"{parent}_id" if style.key == "named" else style.column(parent)
        for n, row in enumerate(rows):
            row[column] = chance.randint(1, n) if n > 3 else None
        made.truth.add((table, (column,), table, (key,)))
    for above in chance.sample(known, min(len(known), chance.randint(0, 2))):
        if made.keys[above][1] > 2 * size:
            continue
        _refer(chance, style, made, rows, table, above)
    _mislead(chance, rows, chance.randint(1, 4))
    made.tables[table] = rows
    if chance.random() < 0.2:  # a copy of which some rows are gone
        copy = f"{table}_{chance.choice(('old', 'copy', 'ragged', 'bak'))}"
        made.tables[copy] = rows[::2] + rows[1::4]
        own = {link for link in made.truth if link[0] == table}
        made.truth |= {(copy, *link[1:]) for link in own if link[2] != table}
        made.right |= {(copy, *link[1:]) for link in own if link[2] == table}
        made.right |= {(copy, link[1], copy, link[3]) for link in own if link[2] == table}


def _refer(
    chance: random.Random, style: _Style, made: _Made, rows: list[Row], table: str, name: str
) -> None:
    key, size = made.keys[name]
    role = chance.choice(ROLES) if chance.random() < 0.25 else ""
    column = _reference(style, name, role)
    if column in rows[0]:
        return
    most = size if chance.random() < 0.6 else max(2, size // 3)
    share = 0.1 if chance.random() < 0.15 else 0.0
    for row in rows:
        row[column] = None if chance.random() < share else chance.randint(1, most)
    made.truth.add((table, (column,), style.table_of(name), (key,)))


def _mislead(chance: random.Random, rows: list[Row], number: int) -> None:
    for measure in chance.sample(MEASURES, number):
        low = chance.choice((0, 1, 1))
        most = chance.choice((5, 9, 30, 120))
        values = [chance.randint(low, most) for _ in rows]
        for row, value in zip(rows, values, strict=True):
            row[measure] = value
    for flag in chance.sample(FLAGS, chance.randint(0, 2)):
        for row in rows:
            row[flag] = chance.randint(0, 1)
    if chance.random() < 0.25:
        name, most = chance.choice(NAMELESS), chance.choice((3, 8, 24, 70))
        for row in rows:
            row[name] = chance.randint(1, most)


def _fact(chance: random.Random, style: _Style, made: _Made, fact: str, names: list[str]) -> None:
    table = {"camel": _camel(fact), "dim": f"fact_{fact}"}.get(style.table, fact)
    rows: list[Row] = [{} for _ in range(chance.choice((300, 1200)))]
    number = {"named": f"{fact}_id"}.get(style.key, style.column(fact))
    if chance.random() < 0.5:
        rows = [{number: n} for n, _ in enumerate(rows, chance.choice((1, 5000)))]
    chosen = chance.sample(names, chance.randint(2, len(names)))
    for name in chosen:
        _refer(chance, style, made, rows, table, name)
        if chance.random() < 0.2:
            _refer(chance, style, made, rows, table, name)
    _mislead(chance, rows, chance.randint(2, 6))
    for name in chance.sample(names, 2):  # measures that have the name of a table
        measure = chance.choice(AROUND).format(style.base(name), s=_plural(style.base(name)))
        most = chance.choice((2, 7, 20))
        for row in rows:
            row[measure] = chance.randint(1, most)
    made.tables[table] = rows
    for link in list(_aggregates(chance, made, table, rows)):
        made.truth.add(link)
    if chance.random() < 0.3:  # another year of the fact, of more rows and with the same numbers
        year = f"{table}_{chance.choice(('archive', 'returned', 'history'))}"
        made.tables[year] = [dict(row) for row in rows[: len(rows) // 2]]
        own = {link for link in made.truth if link[0] == table}
        made.truth |= {(year, *link[1:]) for link in own}


def _aggregates(chance: random.Random, made: _Made, table: str, rows: list[Row]) -> Iterator[Link]:
    """Sums of a fact by one, two or three of its references: these are its keys."""
    own = sorted(link for link in made.truth if link[0] == table)
    for _ in range(chance.randint(0, 2)):
        by = sorted(chance.sample(own, min(len(own), chance.randint(1, 3))))
        columns = [link[1][0] for link in by]
        groups: dict[tuple[object, ...], list[Row]] = {}
        for row in rows:
            groups.setdefault(tuple(row[column] for column in columns), []).append(row)
        name = f"agg_{table}_by_{'_'.join(link[2] for link in by)}"
        sums = [
            {
                **dict(zip(columns, key, strict=True)),
                "fact_count": len(ones),
                "total": sum(n for n, _ in enumerate(ones)),
            }
            for key, ones in groups.items()
            if None not in key
        ]
        if len(sums) > 2 and name not in made.tables:
            made.tables[name] = sums  # type: ignore[assignment]
            for link in by:
                yield name, link[1], link[2], link[3]


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _plural(name: str) -> str:
    if name.endswith(("ss", "ch")):
        return f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
