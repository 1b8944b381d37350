"""How a version of a snapshot is named, and what is refused."""

from __future__ import annotations

import datetime as dt

import pytest

from snaploom.errors import ArgumentInvalid
from snaploom.models.common import parse_instant
from snaploom.output.versions import VersionChoice

DAY = parse_instant("2024-05-01T00:00:00Z")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-05-01", VersionChoice(DAY)),
        (dt.date(2024, 5, 1), VersionChoice(DAY)),
        ("2024-05-01@7", VersionChoice(DAY, 7)),
        ("2024-05-01T02:00:00+02:00@dry-run", VersionChoice(DAY, is_dry_run=True)),
    ],
)
def test_times_numbers_and_dry_runs_are_versions(text, expected) -> None:
    assert VersionChoice.parse(text, "data") == expected


@pytest.mark.parametrize(
    "text", ["2024-05-01@", "2024-05-01@-1", "2024-05-01@dry", "2024-05-01@٣", "@dry-run", "@", 5]
)
def test_anything_else_is_one_error_that_shows_what_is_right(text) -> None:
    with pytest.raises(ArgumentInvalid) as caught:
        VersionChoice.parse(text, "data[1]")
    assert caught.value.path == "data[1]"
    assert caught.value.expected
    assert caught.value.hint
