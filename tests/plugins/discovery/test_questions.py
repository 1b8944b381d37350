"""`snaploom init --from`: what it asks, what it explains, and what one edit changes."""

import io
import re
from pathlib import Path

import pytest
from support.declared.shop import CommandResult, snaploom
from support.discovery.stars import write_tables

ORDERS = {"orders": "id,customer_id%100,note%3 300", "customers": "id,age%7 50"}
"""Half of the customers of orders are not in the register."""
DECLARED, MARKED = "\n    - dataSources: [orders]", "# - {dataSources: [orders]"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def start(folder: Path, *options: object, **tables: str) -> CommandResult:
    write_tables(folder / "data", **tables or ORDERS)
    return snaploom("init", folder / "m", "--from", folder / "data", *options)


def relationships(folder: Path) -> str:
    file = folder / "m" / "relationships.yaml"
    return file.read_text() if file.exists() else ""


@pytest.mark.parametrize(
    ("answer", "is_declared"),
    [("1\n", True), ("\n", False), ("2\n", False), ("7\nx\n1\n", True), ("", False)],
)
def test_a_terminal_asks_where_evidence_is_close(tmp_path, monkeypatch, answer, is_declared):
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    result = start(tmp_path)
    assert "What does orders.customer_id refer to?" in result.err
    assert "1  customers.id, which has 50.0 % of its values" in result.err
    assert (DECLARED in relationships(tmp_path)) is is_declared
    assert (MARKED in relationships(tmp_path)) is (answer == "")
    assert snaploom("validate", "-f", tmp_path / "m").code == 0


@pytest.mark.parametrize("options", [(), ("--yes",)])
def test_without_a_terminal_or_with_yes_a_guess_is_stated(tmp_path, monkeypatch, options):
    monkeypatch.setattr("sys.stdin", Terminal("1\n") if options else io.StringIO("1\n"))
    result = start(tmp_path, *options)
    assert "orders.customer_id refers to: nothing, and not customers.id" in result.out
    assert "What does" not in result.err
    assert MARKED in relationships(tmp_path)


def test_at_most_five_questions_are_asked_those_of_most_effect_first(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", Terminal(""))
    tables = {f"t{n}_orders": f"id,customer_id%100,x{n}%9 {300 + n}" for n in range(8)}
    result = start(tmp_path, "--root", "t7_orders", customers="id,age%7 50", **tables)
    asked = re.findall(r"What does (\w+)\.", result.err)
    assert asked == [f"t{n}_orders" for n in (7, 6, 5, 4, 3)]
    assert result.out.count("refers to: nothing") == 8


def test_questions_of_all_kinds_together_are_at_most_five(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", Terminal("\n" * 9))
    tables = {f"t{n}_orders": f"id,customer_id%100,x{n}%9 300" for n in range(8)}
    result = start(tmp_path, customers="id,age%7 50", **tables)
    assert result.err.count("Number [") == 5


def test_one_mark_less_joins_a_weak_relationship(tmp_path: Path) -> None:
    start(tmp_path)
    file = tmp_path / "m" / "relationships.yaml"
    unjoined = '["customers"]:::unjoined'
    assert unjoined in snaploom("graph", "orders-wide", "-f", tmp_path / "m").out
    file.write_text(file.read_text().replace(f"    {MARKED}", f"    {MARKED[2:]}"))
    assert snaploom("validate", "-f", tmp_path / "m").code == 0
    assert unjoined not in snaploom("graph", "orders-wide", "-f", tmp_path / "m").out


def test_a_column_is_explained_and_nothing_is_written(tmp_path: Path) -> None:
    write_tables(tmp_path / "data", **ORDERS, regions="region_id,x%2 9")
    result = snaploom("init", "--from", tmp_path / "data", "--explain", "Orders.Customer_ID")
    assert result.code == 0, result.err
    assert "whole numbers, 100 different ones, 0 NULL; all 300 rows were read" in result.out
    assert (
        "customers.id: 50.0 % of the values are there; they are 100.0 % of its keys" in result.out
    )
    assert "stopped: 50.0 % of its values are there, and 60 % are needed" in result.out
    assert [each.name for each in tmp_path.iterdir()] == ["data"]


@pytest.mark.parametrize(
    ("pair", "why"),
    [
        ("orders.customer_id=regions.region_id", "names prove nothing"),
        ("orders.note=customers.age", "age is no key of customers: 7 of 7 values stand in several"),
        ("orders.region_id=regions.region_id", "declared"),
        ("regions.region_id=orders.region_id", "region_id is no key of orders"),
        ("orders.region_id=empty.fax_no", "fax_no has no value"),
        ("orders.region_id=empty.paid", "paid is neither a whole number nor a text"),
    ],
)
def test_what_stops_a_pair_is_explained(tmp_path: Path, pair: str, why: str) -> None:
    orders = "id,customer_id%100,note%3,region_id%9 300"
    write_tables(tmp_path / "data", **{**ORDERS, "orders": orders}, regions="region_id,x%2 9")
    (tmp_path / "data" / "empty.csv").write_text("empty_id,fax_no,paid\n1,,1.5\n2,,.5\n")
    result = snaploom("init", "--from", tmp_path / "data", "--explain", pair)
    assert (result.code, why in result.out) == (0, True), result.out + result.err


@pytest.mark.parametrize(
    ("ids", "line"),
    [
        ("007 008", "spelling: 0.0 % as written, 100.0 % with STRIP_LEADING_ZEROS, 100.0 % with "),
        ("x1 8", "spelling: 50.0 % as written, no more with any normalize"),
        ("7- -08", ", 100.0 % with REMOVE_DASHES, STRIP_LEADING_ZEROS, no more"),
    ],
)
def test_spellings_of_a_pair_are_explained(tmp_path: Path, ids: str, line: str) -> None:
    (tmp_path / "shops.csv").write_text("shop_id,city\n7,x\n8,y\n")
    (tmp_path / "sales.csv").write_text("n,shop_id\n" + "".join(f"1,{i}\n" for i in ids.split()))
    result = snaploom("init", "--from", tmp_path, "--explain", "sales.shop_id=shops.shop_id")
    assert line in result.out, result.out + result.err


def test_keys_of_days_are_counted_within_a_day(tmp_path: Path) -> None:
    (tmp_path / "ships.csv").write_text("imo,name\n71,x\n72,y\n")
    for day in (1, 2):
        rows = "".join(f"{imo},{day}\n" for imo in (71, 71, 72, 72))
        (tmp_path / f"calls_2026-05-0{day}.csv").write_text(f"imo,hours\n{rows}")
    out = snaploom("init", "--from", tmp_path, "--explain", "ships.imo=calls.imo").out
    assert "4 of 4 values of a snapshot stand in several rows" in out


def test_equal_names_of_many_tables_are_not_called_different(tmp_path: Path) -> None:
    codes = ["GLU", "NAT", "KAL", "CRP", "HBA", "TSH", "KRE", "LDH"]
    rows = "".join(f"{n},{codes[n % 8]}\n" for n in range(100, 200))
    (tmp_path / "results.csv").write_text("no,kuerzel\n" + rows)
    (tmp_path / "tests.csv").write_text("kuerzel,unit\n" + "".join(f"{c},mg\n" for c in codes))
    out = snaploom("init", tmp_path / "m", "--from", tmp_path).out
    assert "are in tests.kuerzel; a name that many tables may have; 12.5 rows a key" in out
    assert "which are 100.0 % of the keys there; a name that many tables may have)" in out


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--explain", "orders.customer"), "did you mean `orders.customer_id`?"),
        (("--explain", "Orders.zip"), "expected: orders."),
        (("--only", "order"), "did you mean `orders`?"),
        (("--only", "orders,customers"), "write --only orders --only customers"),
        (("--not", "orders", "customers"), "no source is left"),
        (("--depth", "0"), "--depth"),
    ],
)
def test_what_is_not_there_is_one_error(tmp_path, options, text):
    result = start(tmp_path, *options)
    assert result.code == 2
    assert text in result.err
    assert not (tmp_path / "m").exists()


def test_a_folder_is_needed_to_write(tmp_path: Path) -> None:
    result = snaploom("init", "--from", write_tables(tmp_path / "data", **ORDERS))
    assert (result.code, "there is no folder to write to" in result.err) == (2, True)


CHAIN = {
    "lines": "line_no,order_id%90,qty%4 400", "orders": "order_id,customer_id%30,q%3 90",
    "customers": "customer_id,region_id%5,q%2 30", "regions": "region_id,q%2 5",
}  # fmt: skip


@pytest.mark.parametrize(
    ("options", "sources"),
    [
        ((), {"lines", "orders", "customers", "regions"}),
        (("--depth", "2"), {"lines", "orders", "customers"}),
        (("--only", "lines", "orders"), {"lines", "orders"}),
        (("--not", "customers"), {"lines", "orders"}),
    ],
)
def test_the_output_is_bounded_by_names_and_depth(tmp_path, options, sources):
    result = start(tmp_path, *options, **CHAIN)
    assert result.code == 0, result.err
    drawn = snaploom("graph", "lines-wide", "-f", tmp_path / "m").out
    assert {name for name in CHAIN if name in drawn} == sources
