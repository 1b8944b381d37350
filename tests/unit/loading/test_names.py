"""Guesses of names: near ones are found, and no set of names takes more than a bounded work."""

from __future__ import annotations

import random

import pytest
from support.declared.declarations import document, model, parsed
from support.runner.proofscope import within_work

from snaploom.loading.nearmisses import Guesses, did_you_mean, nearest
from snaploom.validate.validator import validate


def test_a_near_name_is_found_among_many() -> None:
    known = [f"orders-{number}" for number in range(5_000)] + ["customer"]
    assert did_you_mean("custmer", known) == "did you mean `customer`?"
    assert nearest("zzz", known) is None


def test_names_that_take_too_much_work_are_not_guessed() -> None:
    letters, chance = list("ab" * 95), random.Random(1)
    known = ["".join(chance.sample(letters, 190)) + str(number) for number in range(2_000)]
    with within_work(seconds=1):
        assert nearest(known[0][::-1], known) is None


@pytest.mark.slow
def test_guesses_end_when_they_took_enough_work() -> None:
    guesses, known = Guesses(), ["customer", "address"]
    assert guesses.did_you_mean("custmer", known) == "did you mean `customer`?"
    with within_work(seconds=2):
        for _ in range(100_000):
            last = guesses.did_you_mean("custmer", known)
    assert last == ""


def test_many_names_that_are_not_there_are_judged_in_bounded_time() -> None:
    key = [{"fields": [{"fieldName": "a", "dataType": {"string": {}}}]}]
    sources = [f"source-number-{number:05d}" for number in range(2_000)]
    spec = {"representations": [{"dataSources": sources, "joinKey": key}]}
    (*others, output) = model()
    names = [f"sorce-nmber-{number:05d}" for number in range(2_000)]
    used = {"name": "big", "exclusions": [{"dataSourceSet": names}]}
    output["spec"]["dataModel"]["dataRelationships"].append(used)
    with within_work(seconds=5):
        found = validate(parsed([*others, output, document("DataRelationship", "big", spec)]))
    assert sum(finding.code == "SL175" for finding in found) == 2_000
