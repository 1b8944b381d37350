"""The page of an output in a cluster, from statuses that anybody may have written."""

from typing import Any

import pytest
from support.declared.declarations import Raw, files, model
from support.site.statuses import JOIN, STATUS

from snaploom.models.common import parse_instant
from snaploom.models.datasource import DataSource
from snaploom.models.outputdataset import OutputDataset
from snaploom.plugins.site.document import MOST_OUTPUTS, status_document, statuses_document
from snaploom.plugins.site.statuspage import StatusPage

NOW = parse_instant("2024-05-02T04:00:00Z")


def a_page(status: Raw | None = STATUS, name: str = "wide", **sources: Raw) -> StatusPage:
    raw = model()[-1] | ({} if status is None else {"status": status})
    raw["metadata"] = {"name": name}
    declared = {key: DataSource.parse(value) for key, value in sources.items()}
    return StatusPage("team", OutputDataset.parse(raw), NOW, declared)


def shown(page: StatusPage) -> str:
    return status_document(page, home="../../index.html", version="1")


def condition(type_: str, status: str, reason: str = "Valid") -> Raw:
    return {
        "type": type_, "status": status, "reason": reason,
        "lastTransitionTime": "2024-05-02T03:00:00Z",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("conditions", "state"),
    [
        ([], "not reconciled yet"),
        ([condition("Ready", "True")], "ready"),
        ([condition("Ready", "False")], "not ready"),
        ([condition("Ready", "False"), condition("Stalled", "True")], "stalled"),
        ([condition("Ready", "True"), condition("SnapshotFresh", "False")], "stale"),
        ([condition("Ready", "True"), condition("Suspended", "True")], "suspended"),
    ],
)
def test_the_state_is_that_of_the_conditions(conditions: list[Any], state: str) -> None:
    assert a_page({"conditions": conditions}).state[0] == state


def test_what_the_operator_has_not_looked_at_has_a_page() -> None:
    document = shown(a_page(None))
    assert "The operator has not looked at this output yet." in document
    assert "No join tree is planned" in document
    assert "No snapshot is published." in document


def test_older_snapshots_are_counted() -> None:
    assert "and 10 older" in shown(a_page())


def test_sources_have_their_kind_and_what_a_run_saw() -> None:
    seen = {"run": "ods-wide-1", "at": "2024-05-02T02:00:00Z",
            "latestSnapshot": "2024-05-01T00:00:00Z"}  # fmt: skip
    source = files("customer") | {"status": {"lastSeen": seen}}
    document = shown(a_page(customer=source))
    assert "hdfsLike" in document
    assert "2024-05-01" in document


def test_circles_of_a_forged_plan_end() -> None:
    joins = [
        JOIN | {"fieldName": "", "parent": ""},
        JOIN | {"fieldName": "a", "parent": ""},
        JOIN | {"fieldName": "A", "parent": "a"},
        JOIN | {"fieldName": "b", "parent": "nowhere"},
    ]
    plan = {"hash": "1", "maxDepth": 1, "joins": joins}
    document = shown(a_page(STATUS | {"plan": plan}))
    assert "Join graph: 2 sources" in document


def test_times_that_are_none_are_dashes() -> None:
    latest = STATUS["latestSnapshot"] | {"time": "yesterday", "publishedAt": "soon"}
    status = STATUS | {
        "latestSnapshot": latest,
        "snapshots": [{"time": "on no day", "rows": 1}] * 2,
    }
    assert "on no day" not in shown(a_page(status))
    statuses_document([(a_page(status), "a.html")], NOW, version="1")


def test_the_list_begins_with_what_needs_a_look() -> None:
    stalled = {"conditions": [condition("Ready", "False"), condition("Stalled", "True")]}
    pages = [(a_page(name="a"), "a.html"), (a_page(stalled, name="b"), "b.html")]
    document = statuses_document(pages, NOW, version="1")
    assert document.index("team/b") < document.index("team/a")
    assert "2 outputs, 1 of them stalled or stale" in document


def test_the_list_is_bounded_and_counts_the_rest() -> None:
    pages = [(a_page(None), "a.html")] * (MOST_OUTPUTS + 3)
    document = statuses_document(pages, NOW, version="1")
    assert document.count('href="a.html"') == MOST_OUTPUTS
    assert "and 3 more" in document


def test_what_cannot_be_parsed_is_named() -> None:
    document = statuses_document([], NOW, version="1", unread=["team/newer"])
    assert "team/newer" in document
    assert "no namespace" in document
