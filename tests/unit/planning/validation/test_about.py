"""Judging some resources of a set gives what judging all gives about them."""

from itertools import pairwise
from pathlib import Path

import pytest
from support.declared.declarations import (
    Raw,
    complex_,
    files,
    key,
    model,
    output,
    parsed,
    relationship,
    simple,
)

from snaploom.loading.load import load
from snaploom.models.common import Resource
from snaploom.validate.validator import validate

EXAMPLES = Path(__file__).parents[4] / "examples"
FAULTY: list[list[Raw]] = [
    [*model(), output("second", **{"outputFolder.folderUri": "/out/wide/inner/"})],
    [*model(), simple("a", "SELECT * FROM x", source="b"), simple("b", "nonsense(", source="a")],
    [output(), files("customer")],
    [*model(), relationship("again", (["customer", "address"], [key("other_id")])),
     output("third", **{"dataModel.dataRelationships": [{"name": "customer-id"},
                                                        {"name": "again"}]})],
    [*model(), relationship("odd", (["customer"], [key("a")]), (["customer"], [key("b")])),
     output("fourth", **{"dataModel.dataRelationships": [{"name": "odd"}]})],
    [files("Customer_1"), complex_("c", "SELECT 1", "c", "Customer_1")],
]  # fmt: skip


def check_each(resources: tuple[Resource, ...]) -> None:
    everything = validate(resources)
    for first, second in pairwise([*resources, resources[0]]):
        about = {first.identity, second.identity}
        expected = tuple(finding for finding in everything if finding.resource in about)
        assert validate(resources, about=about) == expected


@pytest.mark.parametrize("name", ["customer", "flights", "tpch"])
def test_examples(name: str) -> None:
    check_each(load([EXAMPLES / name]).resources)


@pytest.mark.parametrize("raws", FAULTY)
def test_faults_are_reported_for_requested_resources(raws: list[Raw]) -> None:
    resources = tuple(parsed(raws))
    assert validate(resources)
    check_each(resources)


def test_nothing_is_reported_for_no_resource() -> None:
    assert validate(parsed(FAULTY[0]), about=()) == ()
