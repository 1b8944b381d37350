"""What the benchmark of `init --from` counts as found, wrong, and wrong without a word."""

from __future__ import annotations

from scores import Score, scored
from support.discovery.datasetfiles import link

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
    missed = {link("ratings.customer_id > customers.id")}
    assert (found.found, found.missed, found.wrong) == (2, missed, set())


def test_a_wrong_parent_is_silent_unless_it_is_called_a_guess() -> None:
    wrong = "orders.customer_id > cities.id"
    assert score(wrong).silent == {link(wrong)}
    guessed = score(wrong, guess=wrong)
    assert (guessed.wrong, guessed.silent) == ({link(wrong)}, set())


def test_columns_of_one_entity_may_be_joined_by_a_key_only() -> None:
    assert score("customers.city > cities.name") == score()
    assert score("items.region > orders.region").wrong
    by_way = "orders.customer_id > ratings.customer_id"
    assert not score(by_way, key="ratings.customer_id").wrong
    assert score(by_way).wrong
