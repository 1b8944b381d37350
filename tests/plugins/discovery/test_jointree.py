"""The output: its root, roles, grouped children, interval and windows."""

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.discovery.stars import write_tables

from snaploom.models.common import TimeOffset
from snaploom.plugins.discovery.dates import Unit
from snaploom.plugins.discovery.discover import Discovery, discover
from snaploom.plugins.discovery.sourcetexts import EVER, interval_of, window_of

FIRST = datetime(2026, 1, 1, tzinfo=UTC)


def found(folder: Path, root: str | None = None, **tables: str) -> Discovery:
    for name, text in tables.items():
        (folder / f"{name}.csv").write_text(text)
    return discover([str(folder)], "file:///model/", root)


def rows(header: str, *values: str) -> str:
    return "\n".join([header, *values]) + "\n"


CUSTOMERS = rows("id,name", *(f"{i},n{i}" for i in range(1, 21)))
CONTACTS = rows("customer_id,kind", *(f"{i % 10 + 1},k{i}" for i in range(40)))
GROUPS = rows("customer_id,group_code", *(f"{i % 12 + 1},G{i % 7:03d}" for i in range(50)))
NAMES = rows("group_code,title", *(f"G{i:03d},t{i}" for i in range(7)))


def test_satellites_are_grouped_below_what_they_refer_to(tmp_path: Path) -> None:
    phones = rows("customer_id,phone", *(f"{i % 15 + 1},+49{i}" for i in range(30)))
    tables = {"customers": CUSTOMERS, "contacts": CONTACTS, "memberships": GROUPS, "groups": NAMES}
    tree = found(tmp_path, **tables, phones=phones).tree
    assert tree.root.table == "customers"
    grouped = {node.field: node.group_by for node in tree.nodes}
    assert grouped["contacts"] == grouped["memberships"] == ("customer_id",)
    parents = {node.field: tree.nodes[node.parent].field for node in tree.nodes[1:]}
    assert parents["groups"] == "memberships"


def test_of_alike_facts_the_larger_one_is_the_root_whatever_else_meets_the_smaller(tmp_path: Path):
    tables = {
        "drivers": "driver_id,age%40 60", "races": "race_id,laps%7 80", "status": "status_id,x%3 9",
        "results": "result_id,driver_id%60,race_id%80,status_id%9,points%5 30000",
        "sprint_results": "sprint_id,driver_id%60,race_id%80,status_id%9,points%5 90",
        "pit_stops": "stop_id,driver_id%60,race_id%80,lap%9 9000",
        "lap_times": "time_id,driver_id%60,race_id%80,lap%9 9000",
    }  # fmt: skip
    result = discover([str(write_tables(tmp_path / "data", **tables))], "file:///m/")
    assert result.tree.root.table == "results"


def test_a_root_is_taken_as_it_is_named(tmp_path: Path) -> None:
    tree = found(tmp_path, "contacts", customers=CUSTOMERS, contacts=CONTACTS).tree
    assert [(node.field, node.group_by) for node in tree.nodes] == [
        ("contacts", ()),
        ("customers", ()),
    ]


def test_an_empty_source_is_no_root(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "clinic.db") as database:
        database.executescript(
            "CREATE TABLE wards (id INTEGER PRIMARY KEY, name);"
            "CREATE TABLE beds (id INTEGER PRIMARY KEY, ward_id REFERENCES wards (id));"
            "CREATE TABLE stays (id INTEGER PRIMARY KEY, bed_id REFERENCES beds (id));"
            "INSERT INTO wards VALUES (1, 'a'), (2, 'b'); INSERT INTO beds VALUES (1, 1), (2, 2);"
        )
    assert found(tmp_path).tree.root.table == "beds"


def test_arrays_that_would_be_huge_are_left_out(tmp_path: Path) -> None:
    events = rows("customer_id,at", *(f"{i % 2 + 1},{i}" for i in range(1000)))
    result = found(tmp_path, "customers", customers=CUSTOMERS, events=events)
    assert [node.field for node in result.tree.nodes] == ["customers"]
    reasons = {each.what: each.why for each in result.declarations.left_out}
    assert "500 rows a key of customers are too many" in reasons["events"]


def test_what_the_same_person_wrote_is_not_joined(tmp_path: Path) -> None:
    users = rows("user_id,login", *(f"{i},u{i}" for i in range(1, 10)))
    written = [f"{i},{i % 9 + 1},{i / 4}" for i in range(1, 40)]
    orders, prices = (rows(f"{name}_id,created_by,euros", *written) for name in ("order", "price"))
    result = found(tmp_path, "orders", users=users, orders=orders, prices=prices)
    assert [node.table for node in result.tree.nodes] == ["orders", "users"]
    assert len(result.relationships.declared) == 2


def test_a_source_that_hangs_below_one_of_two_roles_is_named(tmp_path: Path) -> None:
    games = rows("id,home_id,away_id", *(f"{i},C{i % 9},C{i % 7}" for i in range(60)))
    clubs = rows("club_id,city", *(f"C{i},t{i}" for i in range(9)))
    titles = rows("club_id,title", *(f"C{i % 9},k{i}" for i in range(18)))
    result = found(tmp_path, "games", games=games, clubs=clubs, titles=titles)
    (left,) = (each for each in result.declarations.left_out if each.what == "titles")
    assert "in the output for away_clubs only, and not for home_clubs" in left.why


def test_roles_of_two_letters_keep_them_in_their_names(tmp_path: Path) -> None:
    shows = rows("show_no,venue_id,qa_venue_id", *(f"{i},{i % 9},{i * 2 % 9}" for i in range(60)))
    venues = rows("venue_id,city", *(f"{i},t{i}" for i in range(9)))
    tree = found(tmp_path, "shows", shows=shows, venues=venues).tree
    assert {node.field for node in tree.nodes} == {"shows", "venue", "qa_venue"}


def test_sources_that_nothing_leads_to_are_left_out(tmp_path: Path) -> None:
    colours = rows("shade,red", *(f"s{i},{i}" for i in range(9)))
    sources = {"customers": CUSTOMERS, "contacts": CONTACTS, "colours": colours, "tones": colours}
    (one,) = found(tmp_path, **sources).declarations.left_out
    assert (one.what, "no relationship leads there" in one.why) == ("colours, tones", True)


@pytest.mark.parametrize(
    ("days", "unit", "length"),
    [
        ([0, 1, 2], Unit.DAY, TimeOffset(day=1)),
        ([0, 1, 4], Unit.DAY, TimeOffset(day=1)),
        ([0, 7, 14], Unit.DAY, TimeOffset(week=1)),
        ([0, 28, 56], Unit.DAY, TimeOffset(week=4)),
        ([0, 14, 28, 49], Unit.DAY, TimeOffset(week=1)),
        ([0, 2 / 86_400], Unit.SECOND, TimeOffset(second=1)),
        ([0, 31, 59], Unit.DAY, TimeOffset(month=1)),
        ([0], Unit.MONTH, TimeOffset(month=1)),
        ([0, 365], Unit.DAY, TimeOffset(year=1)),
        ([0, 1 / 24], Unit.HOUR, TimeOffset(hour=1)),
        ([], Unit.DAY, TimeOffset(day=1)),
    ],
)
def test_the_interval_follows_the_rhythm_of_the_root(days, unit, length):
    assert interval_of([FIRST + timedelta(days=day) for day in days], unit).length == length


@pytest.mark.parametrize(
    ("root", "child", "before", "after", "may_miss"),
    [
        ([0, 1, 2], [0, 1, 2], TimeOffset(), TimeOffset(), False),
        ([0, 1, 2], [0, 2], TimeOffset(day=1), TimeOffset(), False),
        ([0, 5, 9], [0, 3], TimeOffset(day=7), TimeOffset(), False),
        ([0, 5], [0], TimeOffset(year=1), TimeOffset(), False),
        ([0, 5], [3, 5], TimeOffset(), TimeOffset(), True),
        ([0, 5], [], TimeOffset(), EVER, False),
        ([], [0, 5], EVER, TimeOffset(), False),
        ([], [], TimeOffset(), TimeOffset(), False),
    ],
)
def test_windows_hold_the_newest_snapshot_of_every_time(root, child, before, after, may_miss):
    times = [[FIRST + timedelta(days=day) for day in days] for days in (root, child)]
    window = window_of(*times)
    assert (window.before, window.after, window.may_miss) == (before, after, may_miss)


def test_nested_arrays_are_bounded_by_the_product_of_their_rows(tmp_path: Path) -> None:
    result = discover(
        [str(write_tables(
            tmp_path,
            regions="region_id,x%3 4", shops="shop_id,region_id%4 160",
            visits="visit_no,shop_id%160 4800",
        ))],
        "file:///m/", "regions",
    )  # fmt: skip
    assert [node.field for node in result.tree.nodes] == ["regions", "shops"]
    reasons = {each.what: each.why for each in result.declarations.left_out}
    assert "30 rows a key of shops, 40 of which are in each row, are too many" in reasons["visits"]
    assert "groupBy [shop_id]" in reasons["visits"]


def test_structs_that_rows_share_are_bounded_in_all(tmp_path: Path) -> None:
    write_tables(
        tmp_path,
        sales="sale_no,item_id%20,store_id%3 9000", stores="store_id,x%2 3", items="item_id,y%2 20",
        stocks="stock_no,item_id%20 3000", prices="price_no,item_id%20 100",
    )  # fmt: skip
    result = discover([str(tmp_path)], "file:///m/")
    fields = [node.field for node in result.tree.nodes]
    assert fields[0] == "sales"
    assert ("prices" in fields, "stocks" in fields) == (True, False)


def test_a_manager_makes_sales_no_satellite_of_staff(tmp_path: Path) -> None:
    staff = (f"{n},{n // 4 or ''},{n % 5 + 1},{n % 9},{n % 7}" for n in range(1, 40))
    write_tables(tmp_path, stores="id,size%3 5", sales="sale_no,staff_id%39,paid%9 400")
    result = found(tmp_path, staff=rows("id,manager_id,store_id,age,size", *staff))
    assert result.tree.root.table == "sales"
