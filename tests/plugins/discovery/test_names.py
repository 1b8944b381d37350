"""How alike names are, and what they refer to."""

from pathlib import Path

import pytest
from plugins.discovery.quality import found, links

from snaploom.plugins.discovery.foundfiles import LIKE_NAME, SAME_NAME
from snaploom.plugins.discovery.names import (
    column_words,
    common_prefix,
    key_likeness,
    stem,
    words_of,
)


@pytest.mark.parametrize(
    ("child", "table", "parent"),
    [
        ("customer_id", "customers", "id"),
        ("customerId", "Customers", "Id"),
        ("customer", "dim_customer", "customer_key"),
        ("billing_address_id", "addresses", "id"),
        ("kunde", "kunden", "kundennr"),
        ("kd_nr", "kundenstamm", "kd_nr"),
        ("ziellager", "lager", "lager_nr"),
        ("category_id", "categories", "category_id"),
        ("parentTconst", "title_basics", "tconst"),
        ("home_team_id", "teams", "id"),
        ("movieId", "movies", "Id"),
    ],
)
def test_names_of_keys_are_recognised(child: str, table: str, parent: str) -> None:
    assert key_likeness(child, "", "other", parent, "", table) >= 0.75


@pytest.mark.parametrize(
    ("child", "table", "parent"),
    [
        ("cust_id", "customers", "id"),
        ("dept_id", "departments", "id"),
        ("policy_key", "dim_policyholder", "policyholder_key"),
    ],
)
def test_abbreviations_are_like(child: str, table: str, parent: str) -> None:
    assert LIKE_NAME <= key_likeness(child, "", "other", parent, "", table) < 1


@pytest.mark.parametrize(
    ("child", "table", "parent"),
    [
        ("quantity", "products", "id"),
        ("id", "products", "id"),
        ("name", "categories", "name"),
        ("status", "orders", "status"),
        ("customer_id", "orders", "id"),
        ("product_id", "customers", "id"),
        ("status_id", "states", "id"),
        ("income_class_id", "article_class", "article_class_key"),
        ("type", "vaccinetype", "id"),
        ("person_id", "person_credit_card", "credit_card_id"),
    ],
)
def test_other_names_are_not_alike(child: str, table: str, parent: str) -> None:
    prefix = "article" if table == "article_class" else ""
    assert key_likeness(child, "", "other", parent, prefix, table) < LIKE_NAME


def test_a_letter_behind_a_word_for_a_key_names_nothing() -> None:
    other = key_likeness("GM_UG_ID_A", "gm", "groupmenu", "US_ID_A", "us", "user")
    assert other < SAME_NAME <= key_likeness("GM_UG_ID_A", "gm", "g", "UG_ID_A", "ug", "usergroup")
    assert column_words("PERSON_ID_B").base == ("person",)


def test_words_stems_and_prefixes() -> None:
    assert words_of("OrderItem_ID2") == ("order", "item", "id", "2")
    assert words_of("Straße_Größe") == ("strasse", "groesse")
    for one, other in (("customers", "customer"), ("Kunden", "Kunde"), ("cities", "city"),
                       ("addresses", "address"), ("statuses", "status"),
                       ("warehouses", "warehouse"), ("cases", "case")):  # fmt: skip
        assert stem(one.lower()) == stem(other.lower())
    assert common_prefix(("l_orderkey", "l_partkey", "l_tax")) == "l"
    assert common_prefix(("order_id", "customer_id", "total")) == ""
    assert common_prefix(("id_city", "id_shop", "id_owner")) == ""
    assert common_prefix(("cd_demo_sk", "cd_size")) == "cd"


def test_names_of_references_are_compared_in_pieces(tmp_path: Path) -> None:
    result = found(
        tmp_path,
        store_sales="ss_ticket,ss_hdemo_sk%60,ss_bill_cdemo_sk%60,ss_addr_sk%50 400",
        customer_demographics="cd_demo_sk,cd_size%3 400",
        household_demographics="hd_demo_sk,hd_size%3 60",
        customer_address="ca_address_sk,ca_zone%7 50",
    )
    assert links(result) == {
        "store_sales.ss_hdemo_sk > household_demographics.hd_demo_sk",
        "store_sales.ss_bill_cdemo_sk > customer_demographics.cd_demo_sk",
        "store_sales.ss_addr_sk > customer_address.ca_address_sk",
    }
    assert result.guesses == ()


@pytest.mark.parametrize(
    "tables",
    [
        {"agents": "agent_id,x%3 40", "queue_hours": "no,agents%20,agents_idle%9 300"},
        {"room_types": "room_type_id,x%3 9", "rooms": "no,room_type_id%9,view_type_id%4 200"},
        {"work_orders": "work_order_id,x%3 90", "clerks": "no,supervisor_id%30 60"},
    ],
    ids=["numbers of rows", "another type", "work is no worker"],
)
def test_names_with_a_word_of_a_table_do_not_refer_to_it(tmp_path, tables):
    parent = next(iter(tables))
    referring = {
        one.child_columns[0] for one in found(tmp_path, **tables).relationships.declared
        if one.parent == parent
    }  # fmt: skip
    assert referring == ({"room_type_id"} if parent == "room_types" else set())


def test_the_type_of_a_source_is_of_the_types_called_after_it(tmp_path: Path) -> None:
    result = found(
        tmp_path,
        order_types="id,x%2 5", payment_types="id,y%2 5", orders="id,type_id%5,paid%70 400",
    )  # fmt: skip
    assert links(result) == {"orders.type_id > order_types.id"}
    assert result.tree.root.table == "orders"


def test_those_above_in_a_reserve_may_be_of_the_register_beside_it_as_a_guess(tmp_path):
    rows = [f"{n},{3 * (n % 5) + 1 if n > 1 else ''},{n % 5}" for n in range(1, 60, 3)]
    reserve = ["employee_id,supervisor_id,x", *rows]
    result = found(tmp_path, employees="employee_id,desk%9 90", reserve_employees=reserve)
    assert {guess.what for guess in result.guesses} == {
        "reserve_employees.employee_id refers to", "reserve_employees.supervisor_id refers to",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("table", "column", "is_self"),
    [
        ("employees", "manager_id", True),
        ("employee", "ReportsTo", True),
        ("EMPLOYEES", "REPORTSTO", True),
        ("EMPLOYEES", "MANAGERID", True),
        ("categories", "parent_category_id", True),
        ("films", "related_film_id", True),
        ("departments", "manager_id", False),
        ("departments", "MANAGERID", False),
        ("stores", "head_count", False),
        ("pages", "page_number", False),
    ],
)
def test_rows_refer_to_rows_of_their_own_table(tmp_path, table, column, is_self):
    result = found(tmp_path, **{table: f"id,{column}%15,age%4 60"})
    assert (f"{table}.{column} > {table}.id" in links(result)) is is_self


def test_a_nullable_parent_of_another_type_refers_to_its_own_table_as_a_guess(tmp_path):
    rows = [f"{n}{side},{n if side else ''}" for n in range(1, 20) for side in ("", "N", "S")]
    result = found(tmp_path, stops=["stop_id,parent_station", *rows])
    assert links(result) == {"stops.parent_station > stops.stop_id"}
    assert [guess.what for guess in result.guesses] == ["stops.parent_station refers to"]


def test_a_column_named_for_a_source_without_its_key_refers_elsewhere_as_a_guess(tmp_path):
    ids = [1000 + 17 * n for n in range(60)]
    texts = {
        "customers": [f"{one},{v}" for one in ids for v in range(1 + one % 3)],
        "cards": [f"{one},{n % 4}" for n, one in enumerate(ids)],
        "orders": [f"{ids[n * 7 % 60]},{n % 9}" for n in range(300)],
    }
    result = found(tmp_path, **{name: ["customer_id,x", *rows] for name, rows in texts.items()})
    guesses = {each.what: each.text for each in result.guesses}
    assert "customers has this name" in guesses["orders.customer_id refers to"]


@pytest.mark.parametrize(
    ("columns", "are_sure"),
    [
        ("init_node%40,term_node%40", True),
        ("node_1%40,node_2%40", True),
        ("inode%40,jnode%40", True),
        ("radiant_node_id%40,dire_node_id%40", True),
        ("good_node%40,bad_node%40", False),
        ("max_node%40,min_node%40", None),
        ("maximum_node%40,minimum_node%40", None),
        ("node_visits%40,node_age%40", None),
    ],
)
def test_roles_are_known_by_the_columns_beside_them(tmp_path, columns, are_sure):
    result = found(tmp_path, nodes="node_id,x%7 40", links=f"link_no,{columns} 400")
    names = [column.partition("%")[0] for column in columns.split(",")]
    wanted = set() if are_sure is None else {f"links.{name} > nodes.node_id" for name in names}
    assert links(result) == wanted
    stated = {guess.what.removesuffix(" refers to") for guess in result.guesses}
    assert stated == ({f"links.{name}" for name in names} if are_sure is False else set())


@pytest.mark.parametrize(
    "column", ["store_sales", "num_stores", "number_of_stores", "max_store", "store_type_id"]
)
def test_a_number_beside_the_name_of_a_table_is_no_reference(tmp_path: Path, column: str) -> None:
    result = found(tmp_path, stores="id,x%3 9", visits=f"visit_no,{column}%9 90")
    assert links(result) == set()


def test_a_role_before_the_name_of_its_own_table_is_no_other_person(tmp_path: Path) -> None:
    result = found(tmp_path, members="id,x%3 90", trainers="id,lead_trainer_id%40 90")
    assert links(result) == {"trainers.lead_trainer_id > trainers.id"}


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ({"users": "id,age%40 90", "user_friends": "user_id%90,friend_id%88 900"},
         {"user_friends.user_id > users.id", "user_friends.friend_id > users.id"}),
        ({"team": "id,team_api_id+5000,team_size%7,team_rank%9,team_age%5 90",
          "scores": "team_api_id%90+5000,points%9 900"},
         {"scores.team_api_id > team.team_api_id"}),
        ({"shop_orders": "order_id,backorder_order_id%80 900",
          "shop_order_lines": "order_line_id,order_id%900,price%7 2000"},
         {"shop_orders.backorder_order_id > shop_orders.order_id",
          "shop_order_lines.order_id > shop_orders.order_id"}),
        ({"seasons": "year+1949,rain%3 74", "races": "race_id,year%74+1949,laps%9 2000"},
         {"races.year > seasons.year"}),
        ({"results": "result_id,number%80,score%90 900", "late_results": "result_id,rank%9 90"},
         {"late_results.result_id > results.result_id"}),
    ],
    ids=["friends", "prefix", "own key", "years", "number"],
)  # fmt: skip
def test_names_of_keys_are_compared_as_people_mean_them(tmp_path, tables, expected):
    assert links(found(tmp_path, **tables)) == expected


def test_texts_that_are_called_as_a_table_refer_to_its_names(tmp_path: Path) -> None:
    loot = ["block,n", *(f"stone_{n % 30:02},{n % 4}" for n in range(90))]
    blocks = ["id,name,n", *(f"{n},stone_{n:02},{n % 7}" for n in range(40))]
    result = found(tmp_path, loot=loot, blocks=blocks)
    assert links(result) == {"loot.block > blocks.name"}


def test_a_self_reference_that_is_not_used_is_not_called_weak(tmp_path):
    columns = {"departments": "id,title%9 20", "budgets": "id,department_id%20,amount%7 900",
               "employees": "id,department_id%20,manager_id%15,age%4 60"}  # fmt: skip
    result = found(tmp_path, **columns)
    assert "not used by the output: remove the mark" in result.files["relationships.yaml"]
    assert "weak evidence" not in result.files["relationships.yaml"]
