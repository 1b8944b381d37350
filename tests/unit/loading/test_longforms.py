"""Short forms that people know lead to the long form that is right, ready to be copied."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.declared.declarations import files, output, spoilt

from snaploom.loading.documents import read_object
from snaploom.loading.longforms import flow, type_form
from snaploom.models.base import ApiModel
from snaploom.models.common import DataType, TimeOffset
from snaploom.models.finding import Finding
from snaploom.models.outputdataset import LocalDateTime


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("bigint", "{long: {}}"),
        ("INT", "{integer: {}}"),
        ("string", "{string: {}}"),
        ("varchar(20)", "{string: {}}"),
        ("decimal(12, 2)", "{decimal: {precision: 12, scale: 2}}"),
        ("decimal", "{decimal: {precision: 10, scale: 0}}"),
        ("array<string>", "{array: {elementType: {string: {}}}}"),
        ("timestamp_ntz", "{timestampNtz: {}}"),
        ("map<string,bigint>", "{map: {keyType: {string: {}}, valueType: {long: {}}}}"),
        (
            "struct<a:int, b array<date>>",
            "{struct: {fields: [{name: a, dataType: {integer: {}}}, "
            "{name: b, dataType: {array: {elementType: {date: {}}}}}]}}",
        ),
    ],
)
def test_a_type_of_sql_has_a_long_form_that_is_valid(text: str, form: str) -> None:
    found = type_form(text)
    assert flow(found) == form
    DataType.parse(yaml.safe_load(form))


@pytest.mark.parametrize(
    "text",
    ["", "money", "array<string", "array<>", "map<string>", "int)", "decimal(a)", "struct<>x"],
)
def test_what_is_no_type_has_no_form(text: str) -> None:
    assert type_form(text) is None


@given(st.text("abcdeinrstuy<>(),:` 0129", max_size=60))
def test_no_text_breaks_the_reader_of_types(text: str) -> None:
    type_form(text)


def only(raw: dict[str, object]) -> Finding:
    (finding,) = read_object(raw).findings
    return finding


ROOT = "dataModel.rootDataSource.snapshotFilter.fromInterval"


@pytest.mark.parametrize(
    ("field", "given", "hint", "model"),
    [
        ("intervalLength", "7d", "write `intervalLength: {day: 7}`", TimeOffset),
        ("intervalLength", "P1W", "write `intervalLength: {week: 1}`", TimeOffset),
        ("intervalLength", "PT15M", "write `intervalLength: {minute: 15}`", TimeOffset),
        ("intervalLength", "P3M", "write `intervalLength: {month: 3}`", TimeOffset),
        ("maxSnapshotAge", "2 hours", "write `maxSnapshotAge: {hour: 2}`", TimeOffset),
        (
            "intervalStartDate", "2024-05-01",
            "write `intervalStartDate: {year: 2024, month: 5, day: 1, hour: 0, minute: 0, "
            "second: 0, nano: 0, timezone: UTC}`", LocalDateTime,
        ),
    ],
)  # fmt: skip
def test_lengths_and_dates_are_shown_in_the_form_that_is_right(
    field: str, given: str, hint: str, model: type[ApiModel]
) -> None:
    finding = only(spoilt(output(), f"spec.{ROOT}.{field}", given))
    assert (finding.code, finding.hint) == ("SL112", hint)
    model.parse(yaml.safe_load(hint.split(": ", 1)[1].rstrip("`")))


@pytest.mark.parametrize("length", ["5m", "5M"])
def test_a_length_that_may_mean_two_things_is_not_guessed(length: str) -> None:
    finding = only(spoilt(output(), f"spec.{ROOT}.intervalLength", length))
    assert "write `intervalLength" not in finding.hint


@pytest.mark.parametrize(
    ("raw", "hint"),
    [
        (spoilt(output(), "spec.outputFolder.snapshotFormat", "hivePartitioned"),
         "write `snapshotFormat: {hivePartitioned: {}}`"),
        (spoilt(output(), "spec.run.schedule", "daily"), "write `schedule: {cron: ...}`"),
        (spoilt(output(), f"spec.{ROOT}.timeBefore", {"day": 7}),
         "there is one at spec.dataModel.otherDataSources[].snapshot.timeBefore; "
         "move it there, or remove it"),
        (spoilt(files("a"), "spec.hdfsLike.schemaFields",
                [{"name": "n", "dataType": {"bigint": {}}}]), "it is called `long`"),
        (spoilt(files("a"), "spec.hdfsLike.schemaFields",
                [{"name": "n", "dataType": {"type": "bigint"}}]), "write `{long: {}}`"),
        (spoilt(files("a"), "spec.hdfsLike.schemaFields",
                [{"name": "n", "dataType": {"long": None}}]),
         "give `long` a value, `{}` for none"),
        (spoilt(output(), f"spec.{ROOT}.intervalLength", 7),
         "write the unit too, such as `intervalLength: {day: 7}`"),
        (spoilt(output(), f"spec.{ROOT}.intervalLength", {"day": "7"}),
         "write it without quotes: `day: 7`"),
        (spoilt(output(), f"spec.{ROOT}.intervalLength", None),
         "give a value, or leave `intervalLength` out"),
        (spoilt(files("a"), "spec.hdfsLike.sourceUriGlobs", "file:///x/*.csv"),
         'write a list: `sourceUriGlobs: ["file:///x/*.csv"]`'),
        (spoilt(files("a"), "spec.hdfsLike.sourceUriGlobs", 'a"b'),
         "write a list: `sourceUriGlobs: [...]`"),
    ],
)  # fmt: skip
def test_what_was_meant_is_named(raw: dict[str, object], hint: str) -> None:
    assert only(raw).hint == hint


def test_a_missing_field_names_what_belongs_there() -> None:
    raw = files("a")
    del raw["spec"]["hdfsLike"]["snapshot"]
    finding = only(raw)
    assert finding.expected == "a mapping with one of fromFieldValue, fromReadTime"
