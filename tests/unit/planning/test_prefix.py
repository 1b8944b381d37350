"""`sourceUriPrefix`: grammar, matching, typed values, and whether a glob can fit."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snaploom.sources.prefix import (
    CapturedValueInvalid,
    CaptureType,
    PrefixInvalid,
    UriPrefix,
    hive_decoded,
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("", "must end with a literal", id="empty"),
        pytest.param("/a/{day:STRING}", "must end with a literal", id="ends-with-capture"),
        pytest.param("/a/{day}/", "not a capture of the form", id="no-type"),
        pytest.param("/a/{day:INT}/", "'INT' is not a type", id="unknown-type"),
        pytest.param("/a/day}/", "single '}' at character 7", id="lone-brace"),
        pytest.param("/{a:STRING}{b:STRING}/", "nothing separates", id="adjacent"),
        pytest.param("/{a:STRING}/{A:LONG}/", "captured more than once", id="twice"),
    ],
)
def test_illegal_prefixes_are_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(PrefixInvalid, match=reason):
        UriPrefix.parse(text)


def test_values_are_typed_and_decoded_once() -> None:
    prefix = UriPrefix.parse("s3://b/{{x}}/at={at:ISO8601_DATE_TIME}/n={n:LONG}/s={s:STRING}/")
    assert prefix.names == ("at", "n", "s")
    assert prefix.match("s3://b/{x}/at=2020-01-31T12%3A00%3A00Z/n=-7/s=a%2525b/part-0.parquet") == {
        "at": "2020-01-31T12:00:00Z",
        "n": -7,
        "s": "a%25b",
    }


@pytest.mark.parametrize("uri", ["file:///d/x=1/f", "file:/d/x=1/f", "/d/x=1/f"])
@pytest.mark.parametrize("text", ["file:///d/x={x:INTEGER}/", "/d/x={x:INTEGER}/"])
def test_local_files_match_in_every_spelling(text: str, uri: str) -> None:
    assert UriPrefix.parse(text).match(uri) == {"x": 1}


@pytest.mark.parametrize("uri", ["/e/x=1/f", "/d/x=/f", "/d/x=1", "/d/x=a/f", "", "/d/y/x=1/f"])
def test_other_files_do_not_match(uri: str) -> None:
    assert UriPrefix.parse("/d/x={x:INTEGER}/").match(uri) is None


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (CaptureType.STRING, "__HIVE_DEFAULT_PARTITION__"),
        (CaptureType.INTEGER, "__HIVE_DEFAULT_PARTITION__"),
        (CaptureType.INTEGER, "2147483648"),
        (CaptureType.LONG, "9223372036854775808"),
        (CaptureType.LONG, "9" * 5000),
        (CaptureType.ISO8601_DATE_TIME, "2020-01-31"),
        (CaptureType.ISO8601_DATE_TIME, "2020-13-31T00:00:00Z"),
    ],
)
def test_null_and_untyped_values_are_errors(kind: CaptureType, value: str) -> None:
    with pytest.raises(CapturedValueInvalid, match="captured value of x"):
        UriPrefix.parse(f"/x={{x:{kind}}}/").match(f"/x={value}/f")


@pytest.mark.parametrize(
    ("glob", "fits"),
    [
        ("/d/*/*.parquet", True),
        ("/d/day=2020*/x", True),
        ("file:/d/day=2020-01-01/r/*", True),
        ("/d", True),
        ("/d/da{y,te}=1/*", True),
        ("/e/*", False),
        ("/d/day=a/b/*", False),
        ("s3://d/day=a/r/*", False),
    ],
)
def test_a_glob_fits_when_its_literal_head_does(glob: str, fits: bool) -> None:
    assert UriPrefix.parse("/d/day={day:STRING}/r/").fits_glob(glob) is fits


values = st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1)


@given(values, values)
@settings(deadline=None)
def test_what_hive_encodes_comes_back_and_its_glob_fits(first: str, second: str) -> None:
    encoded = [
        "".join(f"%{ord(c):02X}" if c in '%/:="' else c for c in text) for text in (first, second)
    ]
    prefix = UriPrefix.parse("/d/a={a:STRING}/b={b:STRING}/")
    uri = f"/d/a={encoded[0]}/b={encoded[1]}/part-0"
    assert prefix.match(uri) == {"a": first, "b": second}
    assert hive_decoded(encoded[0]) == first
    for end in range(1, len(uri)):
        assert prefix.fits_glob(
            uri[:end].translate(str.maketrans("", "", "*?[]{}\\")) + "*"
        ) or any(c in "*?[]{}\\" for c in uri[:end])
