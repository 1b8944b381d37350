"""What the benchmark of `init --from` counts as found, wrong, and wrong without a word."""

from __future__ import annotations

from support.discovery.datasetfiles import link
from support.discovery.quality import Score, scored

DOCUMENTED = (
    {link("orders.customer_id > customers.id")},
    {link("items.order > orders.id"), link("items.order+region > orders.id+region")},
    {link("ratings.customer_id > customers.id")},
)


def score(*declared: str, guess: str = "", key: str = "") -> Score:
    return scored(
        {link(text): text == guess for text in declared},
        DOCUMENTED,
        [link("customers.city > cities.name")],
        lambda table, columns: f"{table}.{'+'.join(columns)}" == key,
    )


def test_one_form_of_a_documented_relationship_in_any_direction_is_enough() -> None:
    found = score("customers.ID > Orders.CustomerId", "items.region+order > orders.region+id")
    assert found.found == 2
    assert found.missed == {link("ratings.customer_id > customers.id")}
    assert not found.wrong


def test_what_is_also_right_is_neither_found_nor_wrong() -> None:
    assert score("customers.city > cities.name") == score()


def test_a_wrong_parent_is_silent_unless_it_is_called_a_guess() -> None:
    right, wrong = "orders.customer_id > customers.id", "orders.customer_id > cities.id"
    assert score(right, wrong).silent == {link(wrong)}
    guessed = score(right, wrong, guess=wrong)
    assert guessed.wrong == {link(wrong)}
    assert not guessed.silent


def test_a_part_of_a_documented_key_is_wrong() -> None:
    assert score("items.region > orders.region").wrong


def test_columns_of_one_entity_may_be_joined_by_a_key_only() -> None:
    by_way = "orders.customer_id > ratings.customer_id"
    assert not score(by_way, key="ratings.customer_id").wrong
    assert score(by_way).wrong
