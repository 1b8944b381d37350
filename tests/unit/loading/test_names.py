"""Names that were probably meant, with a bound on the work for many of them."""

from __future__ import annotations

from difflib import SequenceMatcher

import pytest
from support.declarations import files, found, key, relationship

from snaploom.loading.names import Hints


def test_a_few_missing_names_have_their_hints() -> None:
    hints = Hints()
    known = [f"customer-{number}" for number in range(500)]
    assert [hints.did_you_mean(name, known) for name in ("customer-7x", "custmer-7")] == [
        "did you mean `customer-7`?"
    ] * 2


def test_no_more_names_are_compared_than_may_be() -> None:
    hints = Hints(work=100)
    assert hints.did_you_mean("customre", ["customer"])
    assert not hints.did_you_mean("customre", ["customer"] * 5)
    assert not hints.did_you_mean("customre", ["customer"])


def test_thousands_of_missing_names_are_not_compared_with_all_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[str] = []
    set_seq1 = SequenceMatcher.set_seq1

    def counted(matcher: SequenceMatcher[str], name: str) -> None:
        compared.append(name)
        set_seq1(matcher, name)

    monkeypatch.setattr(SequenceMatcher, "set_seq1", counted)
    missing = [f"{'ab' * 60}{number}" for number in range(1_000)]
    known = [f"{'ba' * 60}{number}" for number in range(20)]
    raws = [*map(files, known), relationship("r", (missing, [key("x")]))]
    assert len(found(raws)) >= 1_000
    assert len(compared) < 500
