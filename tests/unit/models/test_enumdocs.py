from enum import StrEnum

from snaploom.models.enumdocs import member_docs, one_line


class Colour(StrEnum):
    """Colours."""

    RED = "red"
    """Like a
    rose."""
    GREEN = "green"
    BLUE = "blue"
    """Like the sky."""


def test_meaning_of_a_member_is_the_string_below_it():
    assert member_docs(Colour) == {"red": "Like a rose.", "blue": "Like the sky."}


def test_text_for_users_is_on_one_line_and_cites_no_rule():
    assert one_line("What goes\n    (rule P21).") == "What goes."
    assert one_line("State (rules S24, S25).") == "State."
    assert one_line("Age (in days).") == "Age (in days)."
