"""Expectations are judged as far as they can be without data."""

from __future__ import annotations

import pytest
from support.declared.declarations import model, output, parsed

from snaploom.models.findings import Finding
from snaploom.validate.validator import validate


def found(expression: str) -> list[Finding]:
    check = {"name": "c", "expression": expression}
    return list(validate(parsed([*model()[:-1], output(checks=[check])])))


@pytest.mark.parametrize(
    "expression",
    [
        "count(*) > 0",
        "DATA.amount >= 0",
        "bool_and(address.data.city IS NOT NULL)",
        "data.is_open",
        "exists(address, each -> each.data.city = 'Berlin')",
        "coalesce(data.is_open, false)",
    ],
)
def test_what_can_be_true_or_false_of_the_output_is_accepted(expression: str) -> None:
    assert found(expression) == []


@pytest.mark.parametrize(
    ("expression", "code", "named"),
    [
        ("amount > 0", "SL188", "amount"),
        ("data.a > addresses.data.b", "SL188", "addresses.data.b"),
        ("count(*)", "SL188", "bigint"),
        ("'yes'", "SL188", "string"),
        ("count(*) >", "SL150", "count(*) >"),
        ("data.a > (SELECT 1)", "SL151", "a subquery"),
        ("reflect('java.lang.System', 'exit') = 'x'", "SL151", "reflect"),
    ],
)
def test_what_cannot_is_one_finding(expression: str, code: str, named: str) -> None:
    (finding,) = found(expression)
    assert (finding.code, finding.path) == (code, "spec.checks[0].expression")
    assert named in finding.found


def test_a_misspelt_field_of_a_source_is_answered_with_the_one_that_is_near() -> None:
    (finding,) = found("max(adress.data.city) IS NOT NULL")
    assert finding.hint == "did you mean `address`?"


def test_clustering_by_what_the_output_does_not_have_is_a_finding() -> None:
    columns = ["data.customer_id", "ADDRESS.data.city", "city"]
    change = {"outputFolder.clusterBy": columns}
    (finding,) = validate(parsed([*model()[:-1], output(**change)]))
    assert (finding.code, finding.path) == ("SL189", "spec.outputFolder.clusterBy[2]")
    assert finding.hint.endswith("data.city")
