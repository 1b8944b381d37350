"""How alike names are."""

import pytest

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
