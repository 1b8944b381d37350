"""Star schemas by chance, all of whose dimensions count from 1: values prove nothing there."""

import random
from pathlib import Path

from support.discovery.datasetfiles import DataSet, Link, Row, Table

DIMENSIONS = (
    "customer_demographics", "household_demographics", "customer_address", "promotion", "store",
    "warehouse", "item", "web_site", "web_page", "call_center", "ship_mode", "income_band",
    "reason", "customer",
)  # fmt: skip
ROLES = ("", "bill", "ship", "refunded", "current")


def star(seed: int) -> DataSet:
    """One fact and three to eight dimensions; each is called in one style or another."""
    chance = random.Random(seed)
    chosen = chance.sample(DIMENSIONS, chance.randint(3, 8))
    style = chance.choice(("tpcds", "id", "camel", "dim"))
    tables: list[Table] = []
    truth: set[Link] = set()
    references: list[tuple[str, int]] = []
    for name in chosen:
        size = chance.choice((2, 5, 12, 40, 150))
        key, table = _key(name, style), _table(name, style)
        prefix = f"{_initials(name)}_" if style == "tpcds" else ""
        rows = [{key: n, f"{prefix}label": f"{name} {n}", f"{prefix}size": n * 7 % 5}
                for n in range(1, size + 1)]  # fmt: skip
        tables.append(Table(table, f"{table}.csv", [rows]))
        roles = chance.sample(ROLES, chance.randint(1, 2))
        for role in roles:
            column = _reference(name, role, style)
            truth.add(("sales", (column,), table, (key,)))
            references.append((column, size if chance.random() < 0.7 else max(2, size // 3)))
    rows = [
        {
            "sale_no": 5000 + 3 * n,
            **{c: chance.randint(1, most) for c, most in references},
            "paid": n / 4,
        }
        for n in range(400)
    ]
    facts: list[Row] = [{_fact(c, style): v for c, v in row.items()} for row in rows]
    truth = {(a, (_fact(b[0], style),), c, d) for a, b, c, d in truth}
    return DataSet(
        f"star {seed}", [*tables, Table("sales", "sales.csv", [facts])], frozenset(truth)
    )


def _fact(column: str, style: str) -> str:
    return f"fs_{column}" if style == "tpcds" else column


def _initials(name: str) -> str:
    return "".join(word[0] for word in name.split("_"))


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _table(name: str, style: str) -> str:
    return {"camel": _camel(name), "dim": f"dim_{name}"}.get(style, name)


def _key(name: str, style: str) -> str:
    if style == "tpcds":
        return f"{_initials(name)}_{_short(name, whole=True)}_sk"
    return {"id": "id", "camel": f"{_camel(name)}Id", "dim": f"{name}_key"}[style]


def _short(name: str, *, whole: bool) -> str:
    """`demo` of customer_demographics as TPC-DS calls the key, `cdemo` as it calls references."""
    if name.endswith("demographics"):
        return "demo" if whole else f"{name[0]}demo"
    if name == "customer_address":
        return "address" if whole else "addr"
    return "promo" if name == "promotion" else name


def _reference(name: str, role: str, style: str) -> str:
    if style == "camel":
        return f"{role.capitalize()}{_camel(name)}Id"
    plain = f"{_short(name, whole=False)}_sk" if style == "tpcds" else f"{name}_id"
    plain = f"{name}_key" if style == "dim" else plain
    return f"{role}_{plain}" if role else plain


def write_tables(folder: Path, **tables: str) -> Path:
    """Write CSV files: `a,b+500 3` has three rows, in which one counts from 1, one from 501."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in tables.items():
        columns, _, rows = text.rpartition(" ")
        cells = [
            (name, int(most or rows), int(start or 0))
            for column in columns.split(",")
            for named, _, start in [column.partition("+")]
            for name, _, most in [named.partition("%")]
        ]
        lines = [
            ",".join(str(start + n % most + 1) for _, most, start in cells)
            for n in range(int(rows))
        ]
        header = ",".join(name for name, _, _ in cells)
        (folder / f"{name}.csv").write_text("\n".join([header, *lines]) + "\n")
    return folder
