import json
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import pytest
from support.declared.joinmodels import Model, Relation, bundle_of, customer_model, model, output_of

from snaploom.models.asof import AsOf
from snaploom.models.common import EpochNanos, parse_instant
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.report import SnapshotReason
from snaploom.models.windows import Windows
from snaploom.plan.bundle import Bundle
from snaploom.plan.drawings import (
    BEND,
    CARD_HEIGHT,
    CARD_WIDTH,
    LABEL_GAP,
    Line,
    Picture,
    mermaid,
    picture_of,
    to_svg,
)
from snaploom.plan.explain import plan_json, plan_text, tree_text
from snaploom.plan.intervals import READ_TIME, SourceSnapshots
from snaploom.plan.plan import PublishedState, RunPlan, plan_offline, plan_run
from snaploom.plan.retention import HeldSnapshot
from snaploom.plan.times import Selection
from snaploom.plan.tree import plan_tree
from snaploom.run.declarations import read_declarations

NAMES = ("customer", "customer_address", "customer_contact", "customer_group", "group_attributes")


def day(number: float) -> EpochNanos:
    return EpochNanos(parse_instant("2020-01-01T00:00:00Z") + int(number * 86400) * 10**9)


def bundle(modes: dict[str, str] | None = None, **folder: object) -> Bundle:
    """The customer model; `modes` are snapshotMissingModes by field name."""
    declared = customer_model()
    raw: Any = output_of(declared, **folder).dump()
    for other in raw["spec"]["dataModel"]["otherDataSources"]:
        other["snapshot"]["snapshotMissingMode"] = (modes or {}).get(other["fieldName"], "ERROR")
    return bundle_of(declared, OutputDataset.parse(raw))


def planned(
    given: Bundle, *days: float, missing: dict[str, tuple[float, ...]] | None = None,
    published: PublishedState | None = None, now: float = 100, limit: int | None = None,
) -> RunPlan:  # fmt: skip
    """Every source has snapshots on these days, but for those `missing`."""
    offered = {
        name: SourceSnapshots.of(day(d) for d in days if d not in (missing or {}).get(name, ()))
        for name in NAMES
    }
    return plan_run(plan_offline(given), offered, published or PublishedState(), day(now), limit)


def outcomes(plan: RunPlan) -> list[tuple[float, str, str]]:
    return [
        ((s.time - day(0)) / 86400 / 10**9, s.action.value, s.reason.value)
        for s in plan.snapshots or ()
    ]


def fields_read(plan: RunPlan) -> list[list[str]]:
    return [[read.field_name for read in one.reads] for one in plan.snapshots or ()]


def test_every_source_is_read_root_first() -> None:
    assert fields_read(planned(bundle(), 1)) == [["", *NAMES[1:]]]


def test_removal_of_ended_snapshots_follows_what_is_published_and_is_reported() -> None:
    offered = {name: SourceSnapshots.of([day(1)]) for name in NAMES}
    ended = PublishedState(waiting=2)
    plan = plan_run(plan_offline(bundle()), offered, ended, day(99))
    assert (plan.collecting, plan_json(plan)["collect"]) == (2, {"endedSnapshots": 2})
    assert plan_text(plan).endswith(
        "COLLECT files of 2 ended snapshots, as far as readerGrace has passed\n"
    )
    nothing = plan_run(plan_offline(bundle()), offered, PublishedState((), (day(1),), 2), day(99))
    assert (nothing.snapshots, plan_json(nothing)["collect"]) == ((), None)


def test_excluded_sources_are_not_read() -> None:
    plan = planned(bundle({"customer_group": "CONTINUE_WARN"}), 1, missing={"customer_group": (1,)})
    assert fields_read(plan) == [["", "customer_address", "customer_contact"]]


def test_skipped_and_failed_candidates_read_nothing() -> None:
    given = bundle({"customer_address": "SKIP_WARN"})
    plan = planned(given, 1, 2, 3, missing={"customer_address": (1,), "customer_contact": (2,)})
    assert outcomes(plan) == [
        (1, "SKIP", "SNAPSHOT_MISSING"),
        (2, "FAIL", "SNAPSHOT_MISSING"),
        (3, "PUBLISH", "NEW_SNAPSHOT"),
    ]
    assert fields_read(plan) == [[], [], ["", *NAMES[1:]]]
    assert [one.warn for one in plan.snapshots or ()] == [True, False, False]


def test_backlog_is_processed_in_catchup_order_up_to_the_limit() -> None:
    plan = planned(bundle(snapshotCatchupMode="NEWEST_FIRST"), 1, 2, 3, limit=2)
    assert outcomes(plan) == [
        (3, "PUBLISH", "NEW_SNAPSHOT"), (2, "PUBLISH", "NEW_SNAPSHOT"), (1, "SKIP", "LIMIT"),
    ]  # fmt: skip


def test_published_and_tombstoned_intervals_are_done() -> None:
    published = PublishedState((HeldSnapshot(day(1), day(50)),), (day(2.5),))
    assert outcomes(planned(bundle(), 1, 2, 3, published=published)) == [
        (3, "PUBLISH", "NEW_SNAPSHOT")
    ]


def test_what_retention_would_remove_at_once_is_not_woven() -> None:
    published = PublishedState((HeldSnapshot(day(2), day(50)),))
    given = bundle(snapshotAutoDelete={"maxOldSnapshots": 1})
    assert outcomes(planned(given, 1, 2, 3, 4, published=published)) == [
        (1, "SKIP", "RETENTION"), (3, "PUBLISH", "NEW_SNAPSHOT"), (4, "PUBLISH", "NEW_SNAPSHOT"),
    ]  # fmt: skip


def test_a_failure_that_would_not_be_kept_is_none_and_one_that_would_costs_nothing() -> None:
    given = bundle(snapshotAutoDelete={"maxOldSnapshots": 0})
    old = planned(given, 1, 2, missing={"customer_contact": (1,)})
    assert outcomes(old) == [(1, "SKIP", "RETENTION"), (2, "PUBLISH", "NEW_SNAPSHOT")]
    new = planned(given, 1, 2, missing={"customer_contact": (2,)})
    assert outcomes(new) == [(1, "PUBLISH", "NEW_SNAPSHOT"), (2, "FAIL", "SNAPSHOT_MISSING")]


def test_a_skipped_snapshot_takes_no_other_ones_place() -> None:
    given = bundle({"customer_contact": "SKIP_IGNORE"}, snapshotAutoDelete={"maxOldSnapshots": 0})
    plan = planned(given, 1, 2, missing={"customer_contact": (2,)})
    assert [action for _, action, _ in outcomes(plan)] == ["PUBLISH", "SKIP"]


def test_newest_of_an_open_interval_is_warned_about() -> None:
    [finding] = planned(bundle(), 1, 2, now=2.5).findings
    assert (finding.code, finding.severity.value) == ("SL306", "WARNING")
    assert planned(bundle(), 1, 2, now=3).findings == ()
    now_only = plan_offline(bundle_of(Model("r", {}, [])))
    assert plan_run(now_only, {"r": READ_TIME}, PublishedState(), day(9)).findings == ()


def test_intervals_by_cron_are_planned_like_the_others() -> None:
    raw: Any = output_of(Model("r", {}, [])).dump()
    cron = {"schedule": "0 6 * * *", "startDate": "2020-01-01T00:00:00Z", "length": {"hour": 12}}
    raw["spec"]["dataModel"]["rootDataSource"]["snapshotFilter"] = {"fromCron": cron}
    given = bundle_of(Model("r", {}, []), OutputDataset.parse(raw))
    offered = {"r": SourceSnapshots.of(day(d) for d in (1, 1.3, 1.7, 2.2, 2.3, 2.5))}
    plan = plan_run(plan_offline(given), offered, PublishedState((), (day(1.4),)), day(2.6))
    assert outcomes(plan) == [(2.5, "PUBLISH", "NEW_SNAPSHOT")]
    assert [(f.code, f.path.rpartition("snapshotFilter.")[2]) for f in plan.findings] == [
        ("SL306", "fromCron.preference")
    ]


def test_an_interval_beyond_the_calendar_is_open_for_ever() -> None:
    raw: Any = output_of(Model("r", {}, [])).dump()
    filter_ = raw["spec"]["dataModel"]["rootDataSource"]["snapshotFilter"]
    filter_["fromInterval"]["intervalLength"] = {"year": 9000}
    given = bundle_of(Model("r", {}, []), OutputDataset.parse(raw))
    offered = {"r": SourceSnapshots.of([day(1)])}
    [finding] = plan_run(plan_offline(given), offered, PublishedState(), day(9)).findings
    assert "the end of the calendar" in finding.expected
    filter_["fromInterval"]["onlyClosedIntervals"] = True
    given = bundle_of(Model("r", {}, []), OutputDataset.parse(raw))
    [snapshot] = plan_run(plan_offline(given), offered, PublishedState(), day(9)).snapshots or ()
    assert snapshot.reason is SnapshotReason.INTERVAL_OPEN


def test_snapshots_that_share_a_partition_stop_the_run() -> None:
    output: Any = output_of(
        Model("r", {}, []), snapshotFormat={"hivePartitioned": {"timestampFormat": "UNIX_SECONDS"}}
    ).dump()
    filter_ = output["spec"]["dataModel"]["rootDataSource"]["snapshotFilter"]
    filter_["fromInterval"]["intervalStartDate"]["nano"] = 500_000_000
    given = bundle_of(Model("r", {}, []), OutputDataset.parse(output))
    around = [EpochNanos(day(1) + tenths * 10**8) for tenths in (4, 6)]
    offered = {"r": SourceSnapshots.of(around)}
    plan = plan_run(plan_offline(given), offered, PublishedState(), day(9))
    assert [finding.code for finding in plan.findings] == ["SL305"]
    assert not plan.is_valid


def test_a_tree_with_errors_has_no_snapshots_to_plan() -> None:
    declared = Model("customer", {}, ["x"])
    plan = plan_run(plan_offline(bundle_of(declared)), {}, PublishedState(), day(9))
    assert (plan.snapshots, plan.is_valid) == (None, False)


def test_tolerated_unreachable_sources_are_excluded_from_every_snapshot() -> None:
    declared = Model("customer", {}, ["x"], modes={"x": "CONTINUE_IGNORE"})
    offered = {"customer": SourceSnapshots.of([day(1)])}
    plan = plan_run(plan_offline(bundle_of(declared)), offered, PublishedState(), day(9))
    found: Any = plan_json(plan)
    assert found["candidates"][0]["excluded"] == [{"fieldName": "x", "reason": "PATH_MISSING"}]


def test_json_of_a_plan_is_the_contract() -> None:
    plan = planned(
        bundle({"customer_group": "CONTINUE_IGNORE"}), 1, missing={"customer_group": (1,)}
    )
    found = json.loads(json.dumps(plan_json(plan)))
    assert list(found) == [
        "output", "hash", "root", "joins", "unreachable", "ties", "candidates", "deletes",
        "unforeseen", "collect", "dataFindings", "findings",
    ]  # fmt: skip
    assert (found["output"], found["root"], len(found["hash"])) == ("out", "customer", 64)
    assert found["joins"][-1] == {
        "number": 4, "fieldName": "group_attributes", "source": "group_attributes",
        "parent": "customer_group", "relationship": "group_id", "depth": 2, "groupBy": [],
        "asOf": None, "windows": None, "history": None,
    }  # fmt: skip
    assert found["candidates"] == [
        {
            "time": "2020-01-02T00:00:00Z",
            "partition": "snapshot_epoch=1577923200000",
            "action": "PUBLISH",
            "reason": "NEW_SNAPSHOT",
            "sources": {
                "customer_address": "2020-01-02T00:00:00Z",
                "customer_contact": "2020-01-02T00:00:00Z",
            },
            "histories": {},
            "notes": [],
            "excluded": [
                {"fieldName": "customer_group", "reason": "SNAPSHOT_MISSING"},
                {"fieldName": "group_attributes", "reason": "PARENT_EXCLUDED"},
            ],
        }
    ]


def test_json_without_data_has_null_candidates_and_lists_ties_and_gaps() -> None:
    declared = model("r", {"one": Relation(("r", "a")), "two": Relation(("r", "a"))})
    declared.others.append("lost")
    found = plan_json(plan_offline(bundle_of(declared)))
    assert found["candidates"] is None
    assert found["ties"] == [
        {
            "fieldName": "a", "depth": 1, "antiPriority": 1,
            "candidates": [
                {"parent": "", "relationship": "one"}, {"parent": "", "relationship": "two"},
            ],
        }
    ]  # fmt: skip
    assert found["unreachable"] == [{"fieldName": "lost", "source": "lost", "mode": "ERROR"}]
    findings = found["findings"]
    assert all(
        isinstance(one, dict)
        and list(one) == ["code", "severity", "resource", "path", "message", "hint"]
        for one in findings
    )


def test_text_draws_the_tree() -> None:
    assert tree_text(plan_tree(customer_model().graph())) == (
        "customer\n"
        "├── customer_address      by customer_id\n"
        "├── customer_contact      by customer_id, grouped by customer_id\n"
        "└── customer_group        by customer_id, grouped by customer_id\n"
        "    └── group_attributes  by group_id"
    )


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ({}, "newest since at or before at"),
        ({"direction": "FORWARD", "strict": True}, "oldest since after at"),
        ({"direction": "NEAREST", "tolerance": "1d2h"},
         "nearest since at or beside at, within 1d2h"),
        ({"childUntilField": "until"}, "newest since at or before at, until until"),
        ({"numberTolerance": 2.5, "ties": {"newestBy": "v"}},
         "newest since at or before at, within 2.5, of ties the greatest v"),
        ({"timeZone": "UTC", "tolerance": "0s"}, "newest since at or before at, within 0s, in UTC"),
    ],
)  # fmt: skip
def test_as_of_joins_are_shown_wherever_plans_are(rule: dict[str, object], text: str) -> None:
    as_of = AsOf.parse({"parentField": "at", "childField": "since", **rule})
    tree = plan_tree(customer_model().graph())
    nodes = tuple(replace(n, timed=as_of) if n.number == 1 else n for n in tree.nodes)
    shown = replace(tree, nodes=nodes)
    assert f"by customer_id, {text}" in tree_text(shown)
    assert "1 as of at" in mermaid(customer_model().graph(), shown)
    assert (
        plan_json(replace(plan_offline(bundle()), tree=shown))["joins"][0]["asOf"] == as_of.dump()
    )


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ({}, "windows of since before at: n COUNT"),
        ({"inclusive": True, "timeZone": "UTC"},
         "windows of since at or before at in UTC: n COUNT"),
        ({"aggregates": [{"name": f"n{n}", "function": "LAST_K", "field": "v", "k": 3, "over": "1w"}
                         for n in range(6)]},
         "windows of since before at: n0 LAST_K (3) of v over 1w, n1 LAST_K (3) of v over 1w, "
         "n2 LAST_K (3) of v over 1w, n3 LAST_K (3) of v over 1w and 2 more"),
    ],
)  # fmt: skip
def test_windows_are_shown_wherever_plans_are(rule: dict[str, object], text: str) -> None:
    count = [{"name": "n", "function": "COUNT"}]
    given = {"parentField": "at", "childField": "since", "aggregates": count, **rule}
    windows = Windows.parse(given)
    tree = plan_tree(customer_model().graph())
    nodes = tuple(replace(n, timed=windows) if n.number == 1 else n for n in tree.nodes)
    shown = replace(tree, nodes=nodes)
    assert f"by customer_id, {text}" in tree_text(shown)
    assert "1 windows before at" in mermaid(customer_model().graph(), shown)
    (join, *_) = plan_json(replace(plan_offline(bundle()), tree=shown))["joins"]
    assert (join["asOf"], join["windows"]) == (None, windows.dump())


def test_a_chain_deeper_than_the_stack_is_drawn() -> None:
    names = [f"s{number}" for number in range(1500)]
    relations = {f"r{n}": Relation(pair) for n, pair in enumerate(pairwise(names))}
    declared = model("s0", relations)
    plan = plan_offline(bundle_of(declared))
    assert tree_text(plan.tree).splitlines()[-1].lstrip() == "└── s1499  by r1498"
    drawn = picture_of(bundle_of(declared), plan.graph, plan.tree)
    assert len({card.x for card in drawn.cards}) == 1500
    assert len({card.y for card in drawn.cards}) == 1


def test_text_lists_candidates_and_why_they_fail() -> None:
    text = plan_text(planned(bundle(), 1, 2, missing={"customer_contact": (1,)}, now=2.5))
    assert "FAIL    2020-01-02T00:00:00Z  snapshot_epoch=1577923200000  SNAPSHOT_MISSING" in text
    assert "fix:      Wait for the data, widen the window" in text


def test_text_shows_the_snapshot_taken_of_each_source() -> None:
    plan = planned(bundle(), 1, 2, now=2.5)
    last = plan.snapshots[-1]
    sources = tuple((name, (day(1),) if name == "customer_group" else times)
                    for name, times in last.sources)  # fmt: skip
    text = plan_text(replace(plan, snapshots=(replace(last, sources=sources),)))
    first, newest, older = text.splitlines()[-3:]
    assert first.startswith("PUBLISH")
    assert newest == (
        "        from 2020-01-03T00:00:00Z  customer_address, customer_contact, group_attributes"
    )
    assert older == "        from 2020-01-02T00:00:00Z  customer_group"


def test_plan_shows_the_snapshots_of_a_history_and_its_gaps() -> None:
    plan = planned(bundle(), 1, 2, now=2.5)
    last = plan.snapshots[-1]
    sources = tuple((name, (day(0), day(2)) if name == "customer_group" else times)
                    for name, times in last.sources)  # fmt: skip
    last = replace(last, sources=sources, notes=("customer_group: none of 2020-01-02",))
    plan = replace(plan, snapshots=(last,))
    history, _, warning = plan_text(plan).splitlines()[-3:]
    assert history == (
        "        from 2020-01-01T00:00:00Z to 2020-01-03T00:00:00Z, 2 snapshots  customer_group"
    )
    assert warning == "        warning: customer_group: none of 2020-01-02"
    (shown,) = json.loads(json.dumps(plan_json(plan)))["candidates"]
    times = ["2020-01-01T00:00:00Z", "2020-01-03T00:00:00Z"]
    assert (shown["histories"], shown["sources"]["customer_group"]) == (
        {"customer_group": times}, times[-1],
    )  # fmt: skip


def test_drawings_show_sources_keys_and_the_tree() -> None:
    declared = customer_model()
    declared.relations["group_id"].sources += ("unlisted",)
    graph = declared.graph()
    tree = plan_tree(graph)
    drawn = mermaid(graph, tree)
    assert drawn.startswith("flowchart LR\n")
    assert '["unlisted"]:::unlisted' in drawn
    assert drawn.count("==>") == 4


def test_hash_ignores_what_does_not_affect_the_rows() -> None:
    declared = customer_model()
    same = customer_model()
    same.others.reverse()
    same.relations["customer_id"].anti_priority = 9
    same.relations["unused"] = Relation(("customer", "elsewhere"))
    assert plan_offline(bundle_of(declared)).hash == plan_offline(bundle_of(same)).hash


@pytest.mark.parametrize("change", ["grouping", "key", "missing mode", "source"])
def test_hash_changes_with_what_affects_the_rows(change: str) -> None:
    declared = customer_model()
    given = bundle_of(declared)
    before = plan_offline(given).hash
    if change == "grouping":
        declared.group_by.pop("customer_contact")
    elif change == "key":
        declared.relations["group_id"].keys["customer_group"] = ("other",)
    changed = bundle({"customer_group": "SKIP_WARN"}) if change == "missing mode" else None
    if change == "source":
        other = customer_model()
        other.relations["extra"] = Relation(("customer", "extra"))
        other.others.append("extra")
        changed = bundle_of(other)
    assert plan_offline(changed or bundle_of(declared)).hash != before


@pytest.mark.slow
def test_a_thousand_sources_are_planned_whole() -> None:
    random = Random(1)
    names = [f"s{i}" for i in range(1000)]
    relations: dict[str, Relation] = {}
    placed = names[:1]
    for i in range(300):
        children = names[len(placed) : len(placed) + (4 if i % 3 == 0 else 3)]
        relations[f"r{i}"] = Relation((random.choice(placed[: 1 + i // 2]), *children), 1 + i)
        placed += children
    declared = model("s0", relations, max_depth=32)
    given = bundle_of(declared)
    listing = SourceSnapshots.of(day(number) for number in range(30))
    plan = plan_run(plan_offline(given), dict.fromkeys(names, listing), PublishedState(), day(99))
    plan_json(plan)
    assert [len(snapshot.sources) for snapshot in plan.snapshots] == [len(declared.others) + 1] * 30


@pytest.mark.parametrize(
    ("rules", "restated", "outcome"),
    [
        ({"maxOldSnapshots": 1}, 1, ("FAIL", "RETENTION")),
        ({"maxOldSnapshots": 1}, 2, ("PUBLISH", "NEW_SNAPSHOT")),
        ({"maxSnapshotAge": {"day": 5}}, 1, ("FAIL", "RETENTION")),
        ({"maxSnapshotAge": {"day": 5}}, 3, ("PUBLISH", "NEW_SNAPSHOT")),
        ({"maxSnapshotCreationAge": {"day": 1}}, 1, ("PUBLISH", "NEW_SNAPSHOT")),
        ({}, 1, ("PUBLISH", "NEW_SNAPSHOT")),
    ],
)
def test_restated_snapshot_that_the_run_would_delete_fails_before_it_is_woven(
    rules: dict[str, object], restated: float, outcome: tuple[str, str]
) -> None:
    held = PublishedState(tuple(HeldSnapshot(day(d), day(d)) for d in (1, 2, 3)))
    offered = {name: SourceSnapshots.of(map(day, (1, 2, 3))) for name in NAMES}
    given, again = plan_offline(bundle(snapshotAutoDelete=rules)), Selection(restated=day(restated))
    plan = plan_run(given, offered, held, day(100), None, again, day(8))
    ((_, *found),) = outcomes(plan)
    assert tuple(found) == outcome
    assert day(restated) not in [removal.time for removal in plan.removing]


# The drawing of a join tree: nothing covers anything, and everything is on the page.


EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
Box = tuple[float, float, float, float]


def drawn(example: str, output: str) -> Picture:
    bundle = read_declarations([EXAMPLES / example]).bundle(output)
    plan = plan_offline(bundle)
    return picture_of(bundle, plan.graph, plan.tree)


PICTURES = (drawn("flights", "flights-wide"), drawn("customer", "customer-wide"))


def label_box(line: Line) -> Box:
    right = line.child.x - LABEL_GAP
    middle = line.child.y + CARD_HEIGHT / 2
    return right - line.label_width, middle - 17, right, middle + 17


def boxes(picture: Picture) -> list[Box]:
    cards = [(c.x, c.y, c.x + CARD_WIDTH, c.y + CARD_HEIGHT) for c in picture.cards]
    return cards + [label_box(line) for line in picture.lines if line.is_chosen]


def overlap(one: Box, other: Box) -> bool:
    apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
    return not apart


def test_no_card_or_label_covers_another() -> None:
    for picture in PICTURES:
        pairs = combinations(boxes(picture), 2)
        assert not [pair for pair in pairs if overlap(*pair)]


def test_labels_are_behind_the_bend_of_their_line() -> None:
    for line in (line for picture in PICTURES for line in picture.lines if line.is_chosen):
        assert label_box(line)[0] >= line.parent.x + CARD_WIDTH + BEND


def test_everything_is_on_the_page() -> None:
    for picture in PICTURES:
        for left, top, right, bottom in boxes(picture):
            assert left >= 0
            assert top >= 0
            assert right <= picture.width
            assert bottom <= picture.height


def test_svg_is_xml_and_has_every_name_and_key() -> None:
    root = ElementTree.fromstring(to_svg(PICTURES[1]))
    texts = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"customer_address", "customer-id", "customer_id", "grouped by customer_id"} <= texts
