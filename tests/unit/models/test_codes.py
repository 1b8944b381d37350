"""The entries of codes and the source agree, code by code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import snaploom
import snaploom_operator
from snaploom.errors import problems
from snaploom.models.findings import Severity, make_finding

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
