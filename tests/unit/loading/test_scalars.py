"""Plain scalars mean what kubectl takes them for."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snaploom.loading.composer import ScalarValue, resolve_plain


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True), ("On", True), ("y", True), ("NO", False), ("off", False), ("n", False),
        ("yEs", "yEs"), ("", None), ("~", None), ("Null", None), ("nil", "nil"),
        ("0", 0), ("-7", -7), ("+7", 7), ("1_000", 1000), ("0x1F", 31), ("0b101", 5),
        ("0o17", 15), ("017", 15), ("08", 8.0), ("1.5", 1.5), (".5", 0.5), ("1e3", 1000.0),
        ("1e999", "1e999"), (".inf", ".inf"), (".nan", ".nan"), ("12:30:00", "12:30:00"),
        ("2020-01-31", "2020-01-31"), ("2020-01-31T00:00:00Z", "2020-01-31T00:00:00Z"),
        ("9223372036854775808", 9223372036854775808), ("36893488147419103232", 2.0**65),
        ("-", "-"), ("1.2.3", "1.2.3"), ("4Gi", "4Gi"), ("_1", "_1"),
    ],
)  # fmt: skip
def test_a_plain_scalar_is_read_as_kubectl_reads_it(text: str, value: ScalarValue) -> None:
    result = resolve_plain(text)
    assert result == value
    assert type(result) is type(value)


@given(st.text(alphabet="0123456789_.eExXobn+-tfyYa:~", max_size=600))
@settings(deadline=None)
def test_every_text_has_a_value_that_json_can_hold(text: str) -> None:
    value = resolve_plain(text)
    assert not isinstance(value, float) or math.isfinite(value)
    assert not isinstance(value, int) or abs(value) < 2**64
