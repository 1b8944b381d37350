import re
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated

import cel
import pytest
from annotated_types import Gt, Lt, MaxLen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import Field, StringConstraints, ValidationError
from strategies import data_types, resources, time_offsets
from support.declared.modelrules import (
    BEHIND_TEXTS,
    ONLY_WHERE_IT_STANDS,
    RULES,
    all_models,
    changed,
    escaped,
    faults,
)
from support.runner.quick import examples

import snaploom
import snaploom_operator
from snaploom.errors import problems
from snaploom.models import common
from snaploom.models.base import ApiModel, ListType, field_docs, member_docs, one_line
from snaploom.models.common import DataType, Preference, TimeOffset
from snaploom.models.findings import Severity, make_finding
from snaploom.models.kinds import KINDS
from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.report import LatestSnapshot, PublishedSnapshot, Report
from snaploom.models.schemas import (
    UnknownConstruct,
    as_list,
    as_object,
    crd,
    editor_schema,
    structural_schema,
)

VERSIONS = {kind.name: crd(kind)["spec"]["versions"][0] for kind in KINDS}
SCHEMAS = {name: version["schema"]["openAPIV3Schema"] for name, version in VERSIONS.items()}
few = settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.mark.slow
@few
@given(st.data(), st.sampled_from(KINDS))
def test_drawn_resource_survives_a_round_trip_and_fits_both_schemas(data, kind):
    raw = data.draw(resources(kind.model)) | {"apiVersion": "snaploom.io/v1alpha1"}
    parsed = kind.model.parse(raw)
    dumped = parsed.dump()
    assert parsed.kind == kind.name
    assert kind.model.parse(dumped).dump() == dumped
    for each in (raw, dumped):
        stored = {name: each[name] for name in ("spec", "status") if name in raw}
        assert faults(SCHEMAS[kind.name], stored) == []
        VALIDATOR.validate(each)


def field_schema(annotation, **settings):
    """The converted schema of one described field."""
    namespace = {
        "__module__": __name__,
        "__doc__": "A thing.",
        "__annotations__": {"thing": annotation},
        "thing": Field(description="The thing.", **settings),
    }
    model = type("Thing", (ApiModel,), namespace)
    return as_object(structural_schema(model)["properties"])["thing"]


def test_optional_field_has_the_schema_of_its_type_and_is_not_required():
    assert field_schema(int | None, default=None) == {
        "description": "The thing.",
        "type": "integer",
    }


def test_default_is_in_the_description_only():
    schema = field_schema(Preference, default=Preference.NEWEST)
    assert "default" not in schema
    assert schema["description"] == (
        "The thing. NEWEST: The latest one. OLDEST: The earliest one. Default: NEWEST."
    )


def test_exclusive_bounds_take_the_form_of_openapi():
    schema = field_schema(Annotated[int, Gt(1), Lt(9)])
    assert schema == {
        "description": "The thing.",
        "type": "integer",
        "exclusiveMaximum": True,
        "exclusiveMinimum": True,
        "maximum": 9,
        "minimum": 1,
    }


Text = Annotated[str, StringConstraints(max_length=9)]


@pytest.mark.parametrize(
    ("annotation", "complaint"),
    [
        (str, "thing: maxLength is missing"),
        (Annotated[tuple[Text, ...], ListType("atomic")], "thing: maxItems is missing"),
        (Annotated[tuple[Text, ...], MaxLen(9)], "thing: a list type is missing"),
        (dict[Text, Text], "thing: maxProperties is missing"),
        (Annotated[dict[str, str], MaxLen(9)], "thing{}: maxLength is missing"),
        (int | Text, "thing: a union of 2 things"),
        (tuple[int, int], "thing: no structural form of prefixItems is known"),
        (object, "thing: a type is missing"),
    ],
)
def test_what_has_no_bounded_structural_form_is_refused_with_its_place(annotation, complaint):
    with pytest.raises(UnknownConstruct) as refusal:
        field_schema(annotation)
    assert str(refusal.value) == f"Thing.{complaint}"


def test_field_without_description_is_refused():
    namespace = {"__module__": __name__, "__annotations__": {"thing": int}, "thing": 1}
    model = type("Bare", (ApiModel,), namespace)
    with pytest.raises(UnknownConstruct, match=r"Bare\.thing: a field without description"):
        structural_schema(model)


def test_data_type_is_looked_into_one_level_deep():
    fields = SCHEMAS["DataSource"]["properties"]["spec"]["properties"]["hdfsLike"]["properties"]
    data_type = fields["schemaFields"]["items"]["properties"]["dataType"]
    element = data_type["properties"]["array"]["properties"]["elementType"]
    assert "properties" in data_type
    assert "properties" not in element
    assert element["maxProperties"] == element["minProperties"] == 1
    assert {"required": ["long"]} in element["anyOf"]


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


VALIDATOR = Draft202012Validator(editor_schema())
APPLICATOR = {
    "apiVersion": "snaploom.io/v1alpha1",
    "kind": "MetadataApplicator",
    "metadata": {"name": "a"},
    "spec": {"fieldSelectors": [{"coordinateIncludeRegex": "a"}], "metadata": {"k": "v"}},
}
SOURCE = APPLICATOR | {
    "kind": "DataSource",
    "spec": {"simpleVirtual": {"dataSource": "a", "alias": "a", "dataQuery": "SELECT 1"}},
}


def test_schema_is_a_schema():
    Draft202012Validator.check_schema(editor_schema())


@pytest.mark.parametrize(
    "wrong",
    [
        APPLICATOR | {"kind": "MetadataAplicator"},
        APPLICATOR | {"apiVersion": "v1"},
        {key: value for key, value in APPLICATOR.items() if key != "metadata"},
        APPLICATOR | {"spec": APPLICATOR["spec"] | {"behavior": "MERGE"}},
        APPLICATOR | {"spec": APPLICATOR["spec"] | {"behaviour": "merge"}},
        APPLICATOR | {"spec": APPLICATOR["spec"] | {"metadata": None}},
        SOURCE | {"spec": SOURCE["spec"] | {"jdbc": {}}},
        SOURCE | {"spec": {}},
    ],
)
def test_what_is_wrong_is_marked(wrong):
    assert VALIDATOR.is_valid(APPLICATOR)
    assert VALIDATOR.is_valid(SOURCE)
    assert not VALIDATOR.is_valid(wrong)


schema_of = cache(structural_schema)

ROWS = [pytest.param(model, right, id=model.__name__) for model, right, _ in RULES]
FAULTS = [
    pytest.param(model, right, change, id=f"{model.__name__}-{'-'.join(change)}")
    for model, right, changes in RULES
    for change in changes
]


@pytest.mark.parametrize(("model", "right"), ROWS)
def test_what_is_right_is_accepted_by_parser_and_schema(model, right):
    assert faults(schema_of(model), right) == []
    assert faults(schema_of(model), model.parse(right).dump()) == []


@pytest.mark.parametrize(("model", "right", "change"), FAULTS)
def test_what_is_wrong_is_refused_by_parser_and_schema(model, right, change):
    wrong = changed(right, change)
    if (model, change) not in (*BEHIND_TEXTS, *ONLY_WHERE_IT_STANDS):
        assert faults(schema_of(model), wrong)
    with pytest.raises(ValidationError):
        model.parse(wrong)


@pytest.mark.parametrize(
    ("model", "rule"),
    [
        pytest.param(model, rule, id=f"{model.__name__}-{number}")
        for model in sorted(all_models(), key=lambda model: model.__name__)
        for number, rule in enumerate(vars(model).get("cel_rules", ()))
    ],
)
def test_every_rule_is_broken_by_a_row_of_the_table(model, rule):
    rows = [(right, changes) for table, right, changes in RULES if table is model]
    wrong = [changed(right, change) for right, changes in rows for change in changes]
    assert any(is_broken(rule.rule, data) for data in wrong)


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(model, id=model.__name__)
        for model in sorted(all_models(), key=lambda model: model.__name__)
        if model.one_of
    ],
)
def test_every_choice_is_missed_and_doubled_by_rows_of_the_table(model):
    rows = [(right, changes) for table, right, changes in RULES if table is model]
    wrong = [changed(right, change) for right, changes in rows for change in changes]
    given = {len(data.keys() & set(model.one_of)) for data in wrong}
    assert given >= ({0} if len(model.one_of) == 1 else {0, 2})


def is_broken(rule, data):
    try:
        return cel.evaluate(rule, {"self": escaped(data)}) is False
    except (RuntimeError, TypeError, ValueError):  # data of the wrong form: the schema refuses it
        return False


def test_rule_of_one_of_escapes_words_that_cel_reserves():
    class Choice(ApiModel):
        """A choice."""

        one_of = ("null", "plain")

        null: common.Empty | None = None
        """Nothing."""
        plain: common.Empty | None = None
        """Something."""

    schema = structural_schema(Choice)
    (rule,) = as_list(schema["x-kubernetes-validations"])
    assert rule["message"] == "expected exactly one of null, plain"
    assert "has(self.__null__)" in rule["rule"]
    assert faults(schema, {"null": {}}) == []
    assert faults(schema, {"null": {}, "plain": {}}) == ["expected exactly one of null, plain"]


# The entries of codes and the source agree, code by code.


QUOTED = re.compile(r'"(SL[0-9]{3})"')


def codes_in_source() -> set[str]:
    folders = (Path(each.__file__ or "").parent for each in (snaploom, snaploom_operator))
    modules = (path for each in folders for path in each.rglob("*.py"))
    return {code for path in modules for code in QUOTED.findall(path.read_text("utf-8"))}


def test_every_code_that_is_used_has_an_entry_and_the_other_way_round() -> None:
    assert codes_in_source() == {name for name, each in problems().items() if each.severity}


def test_codes_are_unique_and_in_order() -> None:
    codes = [each for each in problems().values() if each.severity]
    assert codes == sorted(codes)
    assert len({code.title for code in codes}) == len(codes)


def test_severity_belongs_to_the_code_unless_the_caller_decides() -> None:
    assert make_finding("SL101", "x", severity=Severity.WARNING).severity is Severity.ERROR
    assert make_finding("SL130", "x", severity=Severity.WARNING).severity is Severity.WARNING
    with pytest.raises(AssertionError):
        make_finding("SL130", "x")


# Reports of other versions, and what they share with statuses.


FIRST_VERSION = {
    "format": 1,
    "output": "wide",
    "uid": "",
    "runId": "20240315T000000000Z-5be2a84c07d1",
    "phase": "SUCCEEDED",
    "startedAt": "2024-03-15T00:00:00Z",
    "finishedAt": "2024-03-15T00:00:12Z",
    "planHash": "4ce5",
    "manifest": {"uri": "file:///tmp/wide/", "sequence": 2},
    "snapshots": [],
    "skipped": [],
    "failed": [],
    "findings": [],
    "message": "",
    "toolVersion": "0.1.0",
    "sparkVersion": "4.3.0",
    "session": {},
}


def test_report_of_the_first_version_is_read() -> None:
    report = Report.parse(FIRST_VERSION)
    assert (report.reason, report.retryable, report.snapshot_count) == ("", None, None)
    assert Report.parse(report.dump()) == report


def test_snapshots_of_a_report_are_those_of_a_status() -> None:
    newest = LatestSnapshot(
        time="2024-01-01T00:00:00Z", published_at="2024-01-01T00:00:00Z", partition="day=1",
        rows=1, files=1, bytes=1,
    )  # fmt: skip
    short = (PublishedSnapshot(time=newest.time, rows=newest.rows),)
    facts = {"newest": newest.dump(), "published": [one.dump() for one in short]}
    report = Report.parse({**FIRST_VERSION, "snapshotCount": 1, **facts})
    status = OutputDatasetStatus(
        latest_snapshot=report.newest,
        snapshots=report.published,
        snapshot_count=report.snapshot_count,
    )
    assert (status.latest_snapshot, status.snapshots) == (newest, short)


@few
@given(data_types(), time_offsets())
def test_fragments_survive_a_round_trip(data_type, offset):
    assert DataType.parse(data_type.dump()) == data_type
    assert TimeOffset.parse(offset.dump()) == offset
