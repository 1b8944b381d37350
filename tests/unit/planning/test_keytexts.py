"""Normalised keys without Spark: each step, types that may have it, and what it explains."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.declared.declarations import Raw, files, found, parsed, relationship

from snaploom.models.datarelationship import DataRelationship, Normalization
from snaploom.types.keytexts import WHITE_SPACE, explains_more, normalized
from snaploom.validate.validator import validate

SOURCES = [files(name) for name in ("a", "b")]
PATH = "spec.representations[0].joinKey[0]"


@pytest.mark.parametrize(
    ("text", "steps", "expected"),
    [
        (None, "TRIM", None),
        ("", "UPPER", None),
        (f"{WHITE_SPACE}a b{WHITE_SPACE}", "TRIM", "a b"),
        (WHITE_SPACE, "TRIM", None),
        ("\u200ba", "TRIM", "\u200ba"),
        ("stra\u00dfe", "UPPER", "STRASSE"),
        ("\u00c4\u0130", "LOWER", "\u00e4i\u0307"),
        ("007", "STRIP_LEADING_ZEROS", "7"),
        ("000", "STRIP_LEADING_ZEROS", "0"),
        ("00A1", "STRIP_LEADING_ZEROS", "A1"),
        ("-01", "STRIP_LEADING_ZEROS", "-01"),
        ("1.0", "INTEGER", "1"),
        ("+1", "INTEGER", "1"),
        (" 0001\u00a0", "INTEGER", "1"),
        ("-0.00", "INTEGER", "0"),
        ("-07", "INTEGER", "-7"),
        ("9" * 60, "INTEGER", "9" * 60),
        ("1e3", "INTEGER", None),
        ("1.5", "INTEGER", None),
        ("1.", "INTEGER", None),
        ("1,000", "INTEGER", None),
        ("\u0661", "INTEGER", None),
        ("n/a", "INTEGER", None),
        ("e\u0301", "NFC", "\u00e9"),
        ("\u2013a-b\u2212", "REMOVE_DASHES", "ab"),
        ("---", "REMOVE_DASHES", None),
        (" ab-01 ", "TRIM REMOVE_DASHES UPPER", "AB01"),
        ("0 1", "STRIP_LEADING_ZEROS TRIM", "1"),
        ("x", "INTEGER TRIM", None),
    ],
)
def test_each_step_does_what_it_is_described_as(
    text: str | None, steps: str, expected: str | None
) -> None:
    assert normalized(text, map(Normalization, steps.split())) == expected


@given(st.text(), st.sampled_from(Normalization))
def test_a_step_taken_twice_changes_nothing_more(text: str, step: Normalization) -> None:
    once = normalized(text, [step])
    if step not in (Normalization.UPPER, Normalization.LOWER):  # of a few letters it does
        assert normalized(once, [step]) == once


def component(type_: Any, *steps: str, **more: Any) -> list[Raw]:
    return [{"fields": [{"fieldName": "x", "dataType": type_}], "normalize": list(steps), **more}]


@pytest.mark.parametrize(
    ("type_", "steps", "is_sound"),
    [
        ("string", ["TRIM", "INTEGER"], True),
        ("bigint", ["INTEGER"], True),
        ("double", ["INTEGER"], True),
        ("decimal(10,2)", ["INTEGER"], True),
        ("long", ["STRIP_LEADING_ZEROS"], False),
        ("double", ["TRIM", "INTEGER"], False),
        ("date", ["TRIM"], False),
        ("boolean", ["INTEGER"], False),
        ("array<string>", ["UPPER"], False),
    ],
)
def test_only_texts_and_whole_numbers_are_normalised(
    type_: str, steps: list[str], is_sound: bool
) -> None:
    raws = [*SOURCES, relationship("r", (["a"], component(type_, *steps)))]
    expected = [] if is_sound else [("SL166", "DataRelationship/r", f"{PATH}.normalize")]
    assert found(raws) == expected
    if not is_sound:
        (finding,) = validate(parsed(raws))
        assert finding.found == f"{', '.join(steps)} of x ({type_})"
        assert finding.hint


def test_a_query_may_be_normalised_and_the_cast_is_from_text() -> None:
    query = component("date", "TRIM", query="date_format(x, 'y')")
    assert found([*SOURCES, relationship("r", (["a"], query))]) == []
    cast = component("double", "INTEGER", castDataType="binary")
    assert found([*SOURCES, relationship("r", (["a"], cast))]) == []


def test_types_that_integer_makes_one_have_no_warning() -> None:
    plain = [(["a"], component("int", "INTEGER")), (["b"], component("double", "INTEGER"))]
    assert found([*SOURCES, relationship("r", *plain)]) == []
    half = [
        (["a"], component("int", "INTEGER")),
        (["b"], [{"fields": [{"fieldName": "x", "dataType": "double"}]}]),
    ]
    assert [code for code, *_ in found([*SOURCES, relationship("r", *half)])] == ["SL159"]


@pytest.mark.parametrize("steps", [[], ["TRIM", "TRIM"], ["CASEFOLD"], ["trim"]])
def test_an_empty_list_a_repetition_and_an_unknown_step_are_refused(steps: list[str]) -> None:
    with pytest.raises(ValidationError):
        DataRelationship.parse(relationship("r", (["a"], component("string", *steps))))


def test_a_declaration_without_normalize_is_what_it_was() -> None:
    raw = relationship("r", (["a"], [{"fields": [{"fieldName": "x", "dataType": "string"}]}]))
    resource = DataRelationship.parse(raw)
    assert "normalize" not in resource.dump_json()
    assert resource.spec.normalized_keys("a") == ""


@pytest.mark.parametrize(
    ("child", "parent", "steps", "share", "as_written"),
    [
        (["001", "2"], ["1", "2"], "STRIP_LEADING_ZEROS", 1.0, 0.5),
        (["1.0", "2.0"], ["001", "002"], "INTEGER", 1.0, 0.0),
        (["a ", None, ""], ["a"], "TRIM", 1.0, 0.0),
        (
            ["A-1", "b2 "],
            ["a1", "B2"],
            "TRIM NFC UPPER REMOVE_DASHES STRIP_LEADING_ZEROS",
            1.0,
            0.0,
        ),
        (["a"], ["a"], None, 0, 0),
        (["x"], ["a"], None, 0, 0),
        (["a", "x"], ["A", "a", "X"], None, 0, 0),
    ],
)
def test_the_normalisation_that_explains_more_is_found_with_its_evidence(
    child: list[str | None], parent: list[str], steps: str | None, share: float, as_written: float
) -> None:
    explained = explains_more(child, parent)
    if steps is None:
        assert explained is None
    else:
        assert explained is not None
        assert (" ".join(explained.steps), explained.share, explained.as_written) == (
            steps, share, as_written,
        )  # fmt: skip
