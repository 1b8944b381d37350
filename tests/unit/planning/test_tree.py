from itertools import product
from random import Random

import networkx as nx
import pytest
from support.declared.joinmodels import (
    Model,
    Relation,
    customer_model,
    model,
    output_of,
    random_model,
)

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
from snaploom.plan.tree import JoinTree, plan_tree


def tree_of(declared: Model) -> JoinTree:
    return plan_tree(declared.graph())


def edges(tree: JoinTree) -> set[tuple[str, str, str]]:
    return {(node.parent, node.field_name, node.relationship) for node in tree.joins}


def test_worked_example_is_joined_and_numbered_as_designed() -> None:
    tree = tree_of(customer_model())
    assert {node.field_name: node.number for node in tree.nodes} == {
        "": 0, "customer_address": 1, "customer_contact": 2, "customer_group": 3,
        "group_attributes": 4,
    }  # fmt: skip
    assert edges(tree) == {
        ("", "customer_address", "customer_id"),
        ("", "customer_contact", "customer_id"),
        ("", "customer_group", "customer_id"),
        ("customer_group", "group_attributes", "group_id"),
    }
    assert tree.is_complete


def test_a_tolerated_source_may_be_a_bridge() -> None:
    tree = tree_of(
        model(
            "root",
            {"one": Relation(("root", "bridge")), "two": Relation(("bridge", "far"))},
            modes={"bridge": "CONTINUE_IGNORE"},
        )
    )
    assert ("bridge", "far", "two") in edges(tree)


def test_grouping_that_is_no_key_cuts_only_the_ways_into_the_source() -> None:
    declared = customer_model()
    declared.group_by["customer_group"] = ("group_id",)
    tree = tree_of(declared)
    assert {missing.field_name for missing in tree.unreachable} == {
        "customer_group",
        "group_attributes",
    }


def test_grouping_ignores_case_and_order() -> None:
    keys: dict[str, tuple[str, ...]] = {"orders": ("Shop", "Id")}
    declared = model(
        "shops",
        {"shop": Relation(("shops", "orders"), keys=keys | {"shops": ("shop", "id")})},
        group_by={"orders": ("ID", "shop")},
    )
    assert tree_of(declared).is_complete


def test_tie_lists_every_candidate_and_only_the_topmost_is_reported() -> None:
    declared = model(
        "root",
        {
            "card_id": Relation(("account", "loyalty"), 5),
            "email": Relation(("contact", "loyalty"), 5),
            "phone": Relation(("contact", "loyalty"), 6),
            "account": Relation(("root", "account")),
            "contact": Relation(("root", "contact")),
            "below": Relation(("loyalty", "points")),
            "below_too": Relation(("loyalty", "points")),
        },
    )
    tree = tree_of(declared)
    [tie] = tree.ties
    assert (tie.field_name, tie.depth, tie.anti_priority) == ("loyalty", 2, 5)
    assert [(way.parent, way.relationship) for way in tie.candidates] == [
        ("account", "card_id"),
        ("contact", "email"),
    ]
    assert [tie.field_name for tie in tree.ties_below] == ["points"]
    assert {node.field_name for node in tree.joins} == {"account", "contact"}


def test_order_of_configuration_does_not_matter() -> None:
    random = Random(7)
    for _ in range(300):
        declared = random_model(random, sources=8, relations=6)
        expected = tree_of(declared)
        random.shuffle(declared.others)
        shuffled = list(declared.relations.items())
        random.shuffle(shuffled)
        declared.relations = dict(shuffled)
        assert tree_of(declared) == expected


def declared_arcs(declared: Model) -> dict[str, list[tuple[str, str]]]:
    """Ways into each source, straight from rule W9."""
    listed = {declared.root, *declared.others}
    arcs: dict[str, list[tuple[str, str]]] = {name: [] for name in declared.others}
    for name, relation in declared.relations.items():
        for u, v in product(relation.sources, repeat=2):
            if u == v or v == declared.root or not {u, v} <= listed:
                continue
            if any({u, v} <= set(excluded) for excluded in relation.exclusions):
                continue
            key = {part.lower() for part in declared.key(name, v)}
            grouped = {part.lower() for part in declared.group_by.get(v, ())}
            if not grouped or grouped == key:
                arcs[v].append((u, name))
    return arcs


def reachable(declared: Model, arcs: dict[str, list[tuple[str, str]]]) -> set[str]:
    found = {declared.root}
    while more := {v for v in arcs if v not in found and any(u in found for u, _ in arcs[v])}:
        found |= more
    return found


def depth_in(parents: dict[str, tuple[str, str]], name: str) -> int | None:
    """Number of hops to the root; None when the choice of parents has a cycle."""
    for depth in range(len(parents) + 1):
        if name not in parents:
            return depth
        name = parents[name][0]
    return None


def least_trees(declared: Model) -> tuple[set[str], list[dict[str, tuple[str, str]]]]:
    """All spanning trees of least total depth and, among those, least total antiPriority."""
    arcs = declared_arcs(declared)
    within = reachable(declared, arcs)
    names = sorted(within - {declared.root})
    choices = [[arc for arc in arcs[name] if arc[0] in within] for name in names]
    least: tuple[int, int] | None = None
    best: list[dict[str, tuple[str, str]]] = []
    for chosen in product(*choices):
        parents = dict(zip(names, chosen, strict=True))
        depths = [depth_in(parents, name) for name in names]
        if any(depth is None for depth in depths):
            continue
        cost = (
            sum(depth for depth in depths if depth),
            sum(declared.relations[relationship].anti_priority for _, relationship in chosen),
        )
        if least is None or cost < least:
            least, best = cost, []
        if cost == least:
            best.append(parents)
    return within, best


def check_against_all_trees(declared: Model) -> int:
    within, best = least_trees(declared)
    tree = tree_of(declared)
    assert {missing.source for missing in tree.unreachable} == {*declared.others} - within
    varying = {name for name in best[0] if len({parents[name] for parents in best}) > 1}
    ties = (*tree.ties, *tree.ties_below)
    assert {tie.source for tie in ties} == varying
    for tie in ties:
        ways = {(way.source, way.relationship) for way in tie.candidates}
        assert ways == {parents[tie.source] for parents in best}
    for node in tree.joins:
        found = (tree.nodes[0].source if node.parent == "" else node.parent, node.relationship)
        assert best[0][node.source] == found
        assert depth_in(best[0], node.source) == node.depth
    assert bool(ties) == (len(best) > 1)
    return len(best)


@pytest.mark.slow
def test_tree_is_the_unique_least_of_all_spanning_trees_or_a_tie() -> None:
    random = Random(20)
    counts = [check_against_all_trees(random_model(random)) for _ in range(3000)]
    # Both outcomes must be common, or the test would prove little.
    assert sum(count == 1 for count in counts) > 600
    assert sum(count > 1 for count in counts) > 300


@pytest.mark.parametrize("shared", [pytest.param(30, id="sparse"), pytest.param(1000, id="dense")])
def test_a_thousand_sources_are_planned_without_enumeration(shared: int) -> None:
    random = Random(1)
    names = [f"s{i}" for i in range(1000)]
    relations = {
        f"r{i}": Relation(tuple(random.sample(names, shared)), random.randint(1, 1_000_000))
        for i in range(300)
    }
    graph = model("s0", relations).graph()
    tree = plan_tree(graph)
    assert len(tree.depths) + len(tree.unreachable) == len(graph.vertices)


def test_the_graph_has_one_edge_for_each_source_of_a_relationship() -> None:
    graph = random_model(Random(4), sources=9, relations=7).graph()
    assert nx.is_bipartite(graph.network)
    assert graph.network.number_of_edges() == sum(len(link.keys) for link in graph.links)


def test_a_thousand_sources_with_exclusions_of_their_own_are_joined_once() -> None:
    names = [f"s{i}" for i in range(1000)]
    excluded = [
        tuple(name for i, name in enumerate(names) if i and (i >> bit) & 1 == value)
        for bit in range(10)
        for value in (0, 1)
    ]
    relations = {f"r{i}": Relation(tuple(names), i + 1, exclusions=excluded) for i in range(20)}
    graph = model("s0", relations).graph()
    tree = plan_tree(graph)
    assert len(graph.parts["r0"]) == 1000
    assert {node.relationship for node in tree.joins} == {"r0"}
    assert len(tree.joins) == 999


def test_subtrees_paths_and_layers_follow_the_tree() -> None:
    tree = tree_of(customer_model())
    group, attributes = tree.node("customer_group").number, tree.node("group_attributes").number
    assert tree.subtrees([group]) == {group, attributes}
    assert tree.subtrees([]) == frozenset()
    assert tree.path(attributes) == ("customer_group", "group_attributes")
    assert tree.path(0) == ()
    assert [[node.depth for node in layer] for layer in tree.layers] == [[0], [1, 1, 1], [2]]


#


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
