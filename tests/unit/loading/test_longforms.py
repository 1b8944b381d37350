"""Forms that people know, and that are none here, lead to the form that is right."""

from __future__ import annotations

import pytest
from support.declared.declarations import files, output, spoilt

from snaploom.loading.documents import read_object
from snaploom.models.findings import Finding


def only(raw: dict[str, object]) -> Finding:
    (finding,) = read_object(raw).findings
    return finding


ROOT = "dataModel.rootDataSource.snapshotFilter.fromInterval"


@pytest.mark.parametrize("length", ["5m", "5M"])
def test_a_length_that_may_mean_two_things_is_not_guessed(length: str) -> None:
    finding = only(spoilt(output(), f"spec.{ROOT}.intervalLength", length))
    assert (finding.code, finding.found) == ("SL113", f"'{length}'")
    assert finding.hint == "write `5min` for minutes, or `5mo` for months"


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
                [{"name": "n", "dataType": {"type": "bigint"}}]), "write only `bigint`"),
        (spoilt(files("a"), "spec.hdfsLike.schemaFields",
                [{"name": "n", "dataType": {"long": None}}]),
         "give `long` a value, `{}` for none"),
        (spoilt(output(), f"spec.{ROOT}.intervalLength", 7),
         "write the unit too, such as `intervalLength: 7d`"),
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
