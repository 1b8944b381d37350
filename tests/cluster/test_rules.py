"""The API server itself goes through the table that parser and schema are tested with."""

import pytest
from support.declared.modelrules import BEHIND_TEXTS, PLACES, RULES, changed

from snaploom.models import common, outputdataset
from snaploom.models import outputdataset as outputfolder

ROWS = [pytest.param(model, right, id=model.__name__) for model, right, _ in RULES]
FAULTS = [
    pytest.param(model, right, change, id=f"{model.__name__}-{'-'.join(change)}")
    for model, right, changes in RULES
    for change in changes
]


@pytest.mark.parametrize(("model", "right"), ROWS)
def test_what_is_right_is_accepted_as_written_and_with_defaults(judge, model, right):
    assert judge.complaint(*PLACES[model](right)) == ""
    assert judge.complaint(*PLACES[model](model.parse(right).dump())) == ""


@pytest.mark.parametrize(("model", "right", "change"), FAULTS)
def test_what_is_wrong_is_refused(judge, model, right, change):
    complaint = judge.complaint(*PLACES[model](changed(right, change)))
    assert bool(complaint) is ((model, change) not in BEHIND_TEXTS)


@pytest.mark.parametrize(
    ("model", "rule"),
    [
        pytest.param(model, rule, id=f"{model.__name__}-{number}")
        for model, _, _ in RULES
        for number, rule in enumerate(vars(model).get("cel_rules", ()))
    ],
)
def test_every_rule_speaks_through_the_api_server(judge, model, rule):
    rows = [(right, changes) for table, right, changes in RULES if table is model]
    wrong = [changed(right, change) for right, changes in rows for change in changes]
    assert any(rule.message in judge.complaint(*PLACES[model](part)) for part in wrong)


CHOICES = [
    pytest.param(model, changed(right, change), id=f"{model.__name__}-{'-'.join(change)}")
    for model, right, changes in RULES
    for change in changes
    if model.one_of and not model.one_of_by_count  # these are counted by the schema instead
    if len(changed(right, change).keys() & set(model.one_of)) != 1
]


@pytest.mark.parametrize(("model", "wrong"), CHOICES)
def test_every_choice_speaks_through_the_api_server(judge, model, wrong):
    expected = f"expected exactly one of {', '.join(model.one_of)}"
    assert expected in judge.complaint(*PLACES[model](wrong))


LENGTH_AND_START = {"intervalStartDate": "2024-01-01[Europe/Berlin]", "intervalLength": "7d"}
SHORT = [
    (common.DataType, "bigint"),
    (common.DataType, "struct<a: array<decimal(10,2)>, `b c` timestamp_ntz NOT NULL>"),
    (common.TimeOffset, "P1Y2M3DT4H5.5S"),
    (common.TimeOffset, "0s"),
    (outputdataset.LocalDateTime, "2024-01-01T06:30"),
    (outputdataset.FromInterval, LENGTH_AND_START),
]
NO_SHORT_FORM = [
    (common.DataType, "long list"),
    (common.DataType, 5),
    (common.TimeOffset, "7 days"),
    (common.TimeOffset, "5m"),
    (common.TimeOffset, 7),
    (common.TimeOffset, ["7d"]),
    (common.TimeOffset, {"days": 7}),
    (outputdataset.LocalDateTime, "01.01.2024"),
    (outputdataset.FromInterval, LENGTH_AND_START | {"intervalLength": "0d"}),
    (outputdataset.FromInterval, LENGTH_AND_START | {"intervalLength": {"hour": 0}}),
]


@pytest.mark.parametrize(("model", "text"), SHORT)
def test_a_short_form_is_accepted_and_kept(judge, model, text):
    assert judge.complaint(*PLACES[model](text)) == ""


@pytest.mark.parametrize(("model", "text"), NO_SHORT_FORM)
def test_what_is_no_short_form_is_refused(judge, model, text):
    assert judge.complaint(*PLACES[model](text))


@pytest.mark.parametrize("place", ["$(root)/orders/", "s3://lake/$(day)/"])
def test_a_variable_that_was_not_replaced_is_refused(judge, place):
    folder = {"folderUri": place, "snapshotFormat": {"hivePartitioned": {}}}
    assert "folderUri" in judge.complaint(*PLACES[outputfolder.OutputFolder](folder))
