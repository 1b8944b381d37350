"""Lengths of time for people."""

import pytest

from snaploom.models.common import parse_instant
from snaploom_operator.commands.status import ago, duration_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"),
        (0, "0s"),
        (59.9, "59s"),
        (60, "1m"),
        (190, "3m10s"),
        (3_600, "1h"),
        (3_659, "1h"),
        (3_660, "1h1m"),
        (36_000, "10h"),
        (37_000, "10h"),
        (86_400 * 12 + 5_000, "12d"),
    ],
)
def test_a_duration_is_shown_in_the_largest_units(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("time", "text"),
    [("2024-06-01T00:00:00Z", "1h ago"), ("2024-06-01T03:00:00+00:00", "in 2h")],
)
def test_a_time_is_shown_relative_to_now(time: str, text: str) -> None:
    assert ago(time, parse_instant("2024-06-01T01:00:00Z")) == text
