"""Verdicts are kept within a bound; the namespace with most verdicts loses its oldest."""

from __future__ import annotations

from snaploom.policy.sqltext import SqlForm, SqlText
from snaploom.policy.verdicts import RegexList, judge
from snaploom_operator.verdicts import VerdictCache


def texts(prefix: str, count: int) -> list[SqlText]:
    return [SqlText(f"{prefix}{number}", SqlForm.EXPRESSION) for number in range(count)]


def keep(kept: VerdictCache, namespace: str, several: list[SqlText]) -> None:
    for text in several:
        kept.put(namespace, text, judge(text))


def kept_of(kept: VerdictCache, several: list[SqlText]) -> list[SqlText]:
    return [text for text in several if kept.get(text) is not None]


def test_what_is_kept_is_given_again() -> None:
    kept, (text,) = VerdictCache(), texts("a", 1)
    assert kept.get(text) is None
    keep(kept, "team", [text])
    assert kept.get(text) == judge(text)


def test_the_oldest_of_a_namespace_goes_first() -> None:
    kept, several = VerdictCache(largest=3_000), texts("a", 50)
    keep(kept, "team", several)
    left = kept_of(kept, several)
    assert 0 < len(left) < 50
    assert left == several[-len(left) :]


def test_a_namespace_with_many_evicts_only_its_own() -> None:
    kept, few, many = VerdictCache(largest=5_000), texts("a", 3), texts("b", 100)
    keep(kept, "team", few)
    keep(kept, "other", many)
    assert kept_of(kept, few) == few
    assert kept_of(kept, many)


def test_names_count_and_not_only_the_text() -> None:
    wide = SqlText("f(" + ",".join(f"a{n}" for n in range(200)) + ")", SqlForm.EXPRESSION)
    kept = VerdictCache(largest=10_000)
    keep(kept, "team", [wide])
    assert len(wide.text) < 1_000
    assert kept.get(wide) is None


def test_patterns_of_a_list_count_each() -> None:
    wide, few = RegexList(("a",) * 500), RegexList(("a",))
    kept = VerdictCache(largest=10_000)
    for regexes in (wide, few):
        kept.put("team", regexes, judge(regexes))
    assert kept.get(wide) is None
    assert kept.get(few) == judge(few)


def test_a_text_that_two_namespaces_have_is_kept_once() -> None:
    kept, several = VerdictCache(largest=3_000), texts("a", 2)
    for namespace in ("first", "second"):
        keep(kept, namespace, several)
    keep(kept, "first", texts("b", 50))
    assert sum(kept._sizes.values()) <= 3_000
