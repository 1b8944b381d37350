from enum import StrEnum

from snaploom.models.base import ApiModel, field_docs, member_docs, one_line


class Colour(StrEnum):
    """Colours."""

    RED = "red"
    """Like a
    rose."""
    GREEN = "green"
    BLUE = "blue"
    """Like the sky."""


class Animal(ApiModel):
    """An animal."""

    legs: int
    """How many."""
    name: str
    """How it is called."""


class Bird(Animal):
    """A bird."""

    name: str
    """What it is
    called."""
    wings: int


def test_meaning_of_a_field_is_the_string_below_it_where_it_was_declared_last():
    assert field_docs(Bird) == {"legs": "How many.", "name": "What it is\ncalled."}


def test_meaning_of_a_member_is_the_string_below_it():
    assert member_docs(Colour) == {"red": "Like a rose.", "blue": "Like the sky."}


def test_text_for_users_is_on_one_line_and_cites_no_rule():
    assert one_line("What goes\n    (rule P21).") == "What goes."
    assert one_line("State (rules S24, S25).") == "State."
    assert one_line("Age (in days).") == "Age (in days)."
