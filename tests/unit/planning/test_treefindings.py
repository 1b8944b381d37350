from __future__ import annotations

from random import Random

import pytest
from support.declared.joinmodels import Model, Relation, model, output_of, random_model

from snaploom.models.findings import Finding, Severity
from snaploom.plan.findings import (
    AddSource,
    Exclude,
    NarrowExclusions,
    PriorityRepairs,
    RaiseAntiPriority,
    SetGroupBy,
    reach_repairs,
    tie_exclusions,
    tree_findings,
)
from snaploom.plan.tree import plan_tree

AnyRepair = AddSource | SetGroupBy | NarrowExclusions | Exclude | RaiseAntiPriority


def findings_of(declared: Model) -> tuple[Finding, ...]:
    graph = declared.graph()
    return tree_findings(output_of(declared), graph, plan_tree(graph))


def loyalty(**relations: Relation) -> Model:
    return model(
        "customer",
        {"a": Relation(("customer", "account")), "c": Relation(("customer", "contact"))}
        | relations,
    )


def test_tie_between_relationships_offers_priority_or_exclusion() -> None:
    [finding] = findings_of(
        loyalty(
            card_id=Relation(("account", "loyalty"), 5), email=Relation(("contact", "loyalty"), 5)
        )
    )
    assert (finding.code, finding.severity) == ("SL301", Severity.ERROR)
    assert finding.path == "spec.dataModel.otherDataSources[2]"
    assert finding.message == (
        "2 equivalent ways to reach DataSource/loyalty (fieldName loyalty) at depth 2, "
        "antiPriority 5:\n"
        "  * DataRelationship/card_id - DataSource/account (#1) --> DataSource/loyalty (#3)\n"
        "  * DataRelationship/email   - DataSource/contact (#2) --> DataSource/loyalty (#3)"
    )
    assert finding.hint == (
        "raise the antiPriority of DataRelationship/email to 6, "
        "or exclude {contact, loyalty} from DataRelationship/email"
    )


def test_tie_within_one_relationship_offers_exclusion_only() -> None:
    [finding] = findings_of(loyalty(card_id=Relation(("account", "contact", "loyalty"))))
    assert finding.hint == "exclude {contact, loyalty} from DataRelationship/card_id"


@pytest.mark.parametrize(
    ("declared", "found", "hint"),
    [
        pytest.param(
            Model("root", {"one": Relation(("root", "a"))}, ["a", "x"]),
            "no relationship of this output mentions DataSource/x",
            "add to dataRelationships a DataRelationship that has DataSource/x and a source "
            "within reach, such as DataSource/root",
            id="no relationship mentions it",
        ),
        pytest.param(
            model("root", {"one": Relation(("root", "b")), "two": Relation(("b", "x"))},
                  unlisted=["b"]),
            "DataRelationship/two leads only to sources that this output does not list: b",
            "add DataSource/b to otherDataSources",
            id="an unlisted source bridges the gap",
        ),
        pytest.param(
            model("root", {"one": Relation(("root", "x"))}, group_by={"x": ("colour", "size")}),
            "groupBy [colour, size] is not its key in DataRelationship/one, which is [one]",
            "set groupBy of x to [one], its key in DataRelationship/one (or remove the groupBy)",
            id="groupBy is no key",
        ),
        pytest.param(
            model("root", {"one": Relation(("root", "x"), exclusions=[("root", "x")])}),
            "an exclusion of DataRelationship/one cuts it off from root",
            "take x out of exclusions[0] of DataRelationship/one",
            id="an exclusion cuts it off",
        ),
    ],
)  # fmt: skip
def test_unreachable_source_is_explained_with_a_fix(declared: Model, found: str, hint: str) -> None:
    [finding] = findings_of(declared)
    assert (finding.code, finding.severity) == ("SL302", Severity.ERROR)
    assert (finding.found, finding.hint) == (found, hint)


def test_source_behind_an_unreachable_one_gets_the_whole_chain() -> None:
    declared = model(
        "root",
        {"one": Relation(("root", "a")), "two": Relation(("a", "x"))},
        group_by={"a": ("other",)},
    )
    finding = findings_of(declared)[1]
    assert finding.found == "DataRelationship/two reaches only other unreachable sources: a"
    assert finding.hint.startswith("set groupBy of a to [one]")


def test_tolerated_unreachable_sources_warn_or_stay_silent() -> None:
    declared = Model(
        "root", {"one": Relation(("root", "a"))}, ["a", "loud", "quiet"],
        modes={"loud": "CONTINUE_WARN", "quiet": "CONTINUE_IGNORE"},
    )  # fmt: skip
    [finding] = findings_of(declared)
    assert (finding.code, finding.severity) == ("SL303", Severity.WARNING)
    assert "DataSource/loud" in finding.message


@pytest.mark.parametrize(("limit", "codes"), [(3, []), (2, ["SL304"])])
def test_tree_may_be_exactly_as_deep_as_max_depth(limit: int, codes: list[str]) -> None:
    chain = {f"r{i}": Relation((f"s{i}", f"s{i + 1}")) for i in range(3)}
    findings = findings_of(model("s0", chain, max_depth=limit))
    assert [finding.code for finding in findings] == codes
    assert [finding.hint for finding in findings] == ["raise maxDepth to 3"] * len(codes)


def apply(declared: Model, repair: AnyRepair) -> None:
    match repair:
        case AddSource(source):
            declared.others.append(source)
        case SetGroupBy(field_name, _, fields):
            declared.group_by[field_name] = fields
        case NarrowExclusions(relationship, exclusions, source):
            relation = declared.relations[relationship]
            narrowed = [
                tuple(s for s in sources if number not in exclusions or s != source)
                for number, sources in enumerate(relation.exclusions)
            ]
            relation.exclusions = [sources for sources in narrowed if len(sources) > 1]
        case Exclude(relationship, sources):
            declared.relations[relationship].exclusions.append(sources)
        case RaiseAntiPriority(relationship, value):
            declared.relations[relationship].anti_priority = value


def connect(declared: Model, source: str) -> None:
    """The suggestion for a source that nothing connects to the root."""
    key = declared.group_by.get(source, ("key",))
    relation = Relation((declared.root, source), keys={source: key, declared.root: key})
    declared.relations[f"to_{source}"] = relation


def repair_reach(declared: Model) -> int:
    """Apply the suggestions for one unreachable source after another; how many."""
    steps = 0
    while (tree := plan_tree(graph := declared.graph())).unreachable:
        source = tree.unreachable[0].source
        repairs = reach_repairs(graph, tree).get(source, ())
        for repair in repairs:
            apply(declared, repair)
        if not repairs:
            connect(declared, source)
        after = plan_tree(declared.graph())
        assert source in after.depths, repairs
        assert {m.source for m in after.unreachable} < {m.source for m in tree.unreachable}
        steps += 1
    return steps


def repair_ties(declared: Model, *, by_priority: bool) -> int:
    """Apply the suggestions for one tie after another; how many."""
    steps = 0
    while (tree := plan_tree(graph := declared.graph())).ties:
        tie = tree.ties[0]
        raised = PriorityRepairs(graph, tree).of(tie) if by_priority else ()
        for repair in raised or tie_exclusions(tie):
            apply(declared, repair)
        after = plan_tree(declared.graph())
        assert after.depths == tree.depths
        left = {t.source for t in (*after.ties, *after.ties_below)}
        assert left < {t.source for t in (*tree.ties, *tree.ties_below)}
        assert tie.source not in left
        steps += 1
    return steps


@pytest.mark.slow
@pytest.mark.parametrize("by_priority", [True, False])
def test_applying_the_suggested_fixes_gives_a_complete_tree(by_priority: bool) -> None:
    random = Random(3)
    reach = ties = 0
    for _ in range(1200):
        declared = random_model(random, sources=7, relations=5)
        reach += repair_reach(declared)
        ties += repair_ties(declared, by_priority=by_priority)
        assert plan_tree(declared.graph()).is_complete
    assert reach > 500
    assert ties > 300


def test_each_suggestion_for_reach_is_as_short_as_possible() -> None:
    declared = model(
        "root",
        {
            "far": Relation(("root", "u1")),
            "farther": Relation(("u1", "x")),
            "near": Relation(("root", "x"), exclusions=[("root", "x")], keys={}),
        },
        unlisted=["u1"],
        group_by={"x": ("near",)},
    )
    graph = declared.graph()
    assert reach_repairs(graph, plan_tree(graph))["x"] == (NarrowExclusions("near", (0,), "x"),)


@pytest.mark.slow
def test_explaining_a_dense_ambiguous_model_stays_linear() -> None:
    names = [f"s{i}" for i in range(400)]
    relations = {f"r{i}": Relation(tuple(names[1:]), 1) for i in range(20)}
    relations["first"] = Relation(("s0", *names[1:200]))
    findings = findings_of(model("s0", relations))
    assert len(findings) == 200
    assert "and 3960 more" in findings[0].message


def test_relationship_that_lost_everywhere_is_reported_once_the_tree_is_decided() -> None:
    ways = {"costly": Relation(("account", "loyalty"), 9), "near": Relation(("contact", "loyalty"))}
    [finding] = findings_of(loyalty(**ways))
    assert (finding.code, finding.severity) == ("SL308", Severity.WARNING)
    assert finding.path == "spec.dataModel.dataRelationships[2]"
    assert "DataRelationship/costly is never used" in finding.message
    ways["costly"] = Relation(("account", "loyalty"))
    assert [finding.code for finding in findings_of(loyalty(**ways))] == ["SL301"]
