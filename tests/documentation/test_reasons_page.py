"""Every reason has a section with meaning, cause and fix."""

from __future__ import annotations

from functools import cache

import pytest
from generation.errorclasses import OPERATOR, errors
from generation.reasons import PAGE
from support.documentation.pages import DOCS, anchors_of

from snaploom.models.base import member_docs
from snaploom.models.codes import CODE_BY_ID
from snaploom_operator.conditions import EVERY_REMEDY, REMEDIES, Reason


@cache
def words() -> set[str]:
    """Everything that a condition, an event, a run or the log may give as its reason."""
    return {reason.value for reason in Reason} | {
        error.reason for error in [*errors(), *errors(OPERATOR)]
    }


@cache
def sections() -> dict[str, str]:
    """Text of each section, by reason."""
    _, *parts = (DOCS / PAGE).read_text("utf-8").split("\n### ")
    return {part.partition("\n")[0]: part.partition("\n## ")[0] for part in parts}


def test_every_reason_has_a_section_and_nothing_else_has() -> None:
    assert set(EVERY_REMEDY) == words(), "a reason needs a Remedy, in `remedies/` beside it"
    assert set(sections()) == words(), "run `make generate`"
    assert set(REMEDIES) == set(Reason)


@pytest.mark.parametrize("word", sorted(words()))
def test_a_section_has_meaning_cause_and_fix(word: str) -> None:
    _, meaning, cause, fix = (part.strip() for part in sections()[word].strip().split("\n\n"))
    for text in (meaning, cause.removeprefix("**Cause**:"), fix.removeprefix("**Fix**:")):
        assert len(text.split()) > 1
        assert text.endswith((".", "`.", ".)"))
    assert word.lower() in anchors_of(DOCS / PAGE)


def test_meanings_are_those_of_the_enum() -> None:
    documented = member_docs(Reason)
    assert all(documented[reason] in sections()[reason] for reason in Reason)


def test_findings_and_reasons_lead_to_each_other() -> None:
    findings = (DOCS / "reference/findings.md").read_text("utf-8")
    for word, remedy in EVERY_REMEDY.items():
        for code in remedy.codes:
            section = findings.partition(f"## {code}: {CODE_BY_ID[code].title}\n")[2]
            assert f"({PAGE.join(('../', '#'))}{word.lower()})" in section.partition("\n## ")[0]
            assert f"[{code}](" in sections()[word]
