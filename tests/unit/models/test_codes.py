"""The catalogue of codes and the source agree, code by code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import snaploom.models.findings
import snaploom_operator
from snaploom.models.codes import CODES, make_finding
from snaploom.models.findings import Severity

CATALOGUE = Path(snaploom.models.findings.__file__).parent
QUOTED = re.compile(r'"(SL[0-9]{3})"')


def codes_in_source() -> set[str]:
    folders = (CATALOGUE.parents[1], Path(snaploom_operator.__file__).parent)
    modules = (path for each in folders for path in each.rglob("*.py") if path.parent != CATALOGUE)
    return {code for path in modules for code in QUOTED.findall(path.read_text("utf-8"))}


def test_every_code_that_is_used_is_in_the_catalogue_and_the_other_way_round() -> None:
    assert codes_in_source() == {code.code for code in CODES}


def test_codes_are_unique_and_in_order() -> None:
    codes = [code.code for code in CODES]
    assert codes == sorted(set(codes))
    assert len({code.title for code in CODES}) == len(CODES)


def test_severity_belongs_to_the_code_unless_the_caller_decides() -> None:
    assert make_finding("SL101", "x", severity=Severity.WARNING).severity is Severity.ERROR
    assert make_finding("SL130", "x", severity=Severity.WARNING).severity is Severity.WARNING
    with pytest.raises(AssertionError):
        make_finding("SL130", "x")
