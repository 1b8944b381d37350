"""The page of permissions lists every rule that Helm renders, each with its reason."""

from __future__ import annotations

from generation.permissions import GrantedRule, rules_of_accounts, rules_of_people
from support.cluster.chart import Raw, Rendered

EVERYTHING: Raw = {
    "operator": {"submitters": ["SparkOperator", "ApacheSpark"]},
    "pages": {"enabled": True},
}
"""Values by which no rule is left out."""


def as_documented(rule: GrantedRule) -> tuple[frozenset[str], ...]:
    return tuple(map(frozenset, (rule.groups, rule.resources, rule.verbs)))


def rendered(rule: Raw) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(rule[key]) for key in ("apiGroups", "resources", "verbs"))


def test_every_rule_of_an_account_is_listed() -> None:
    found = Rendered.of(EVERYTHING)
    documented: dict[str, list[tuple[frozenset[str], ...]]] = {}
    for (component, _), rules in rules_of_accounts().items():
        documented.setdefault(component, []).extend(as_documented(rule) for rule in rules)
    for component in ("operator", "webhook", "pages", "spark"):
        assert documented.pop(component) == [rendered(rule) for rule in found.rules(component)]
    assert documented == {}


def test_every_rule_of_people_is_listed() -> None:
    found = Rendered.of(EVERYTHING).of_kind("ClusterRole")
    of_people = {
        each["metadata"]["name"].removeprefix("snaploom-"): each["rules"]
        for each in found
        if "app.kubernetes.io/component" not in each["metadata"]["labels"]
    }
    documented = {rule.names[0].split("`")[1]: [as_documented(rule)] for rule in rules_of_people()}
    assert documented == {
        role: [rendered(rule) for rule in rules] for role, rules in of_people.items()
    }


def test_no_rule_lacks_a_reason() -> None:
    rules = [rule for rules in rules_of_accounts().values() for rule in rules]
    for rule in (*rules, *rules_of_people()):
        assert rule.why.endswith("."), rule
        assert len(rule.why.split()) > 5, rule
