"""One table drives both judges: the parser, and the schema with the rules of the API server.

A third judge, the API server itself, goes through the same table in `tests/cluster`.
"""

from functools import cache

import cel
import pytest
from pydantic import ValidationError
from support.declared.modelrules import (
    BEHIND_TEXTS,
    ONLY_WHERE_IT_STANDS,
    RULES,
    all_models,
    changed,
    faults,
)

from snaploom.models import common
from snaploom.models.base import ApiModel
from snaploom.models.schemas import as_list, structural_schema

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
        return cel.evaluate(rule, {"self": data}) is False
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
