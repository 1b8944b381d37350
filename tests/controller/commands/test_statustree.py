"""The tree of `snaploom status`, from resources with statuses to text."""

import io
from typing import Any

import pytest
from rich.console import Console
from support.declared.declarations import Raw, document, files, output, relationship, simple
from support.declared.declarations import key as join_key

from snaploom.models.common import parse_instant
from snaploom.models.findings import InvalidDeclarations
from snaploom.models.kinds import KIND_BY_NAME, KINDS
from snaploom_operator.commands.options import NamespaceView, parse_name, parse_runnable
from snaploom_operator.commands.status import ago, duration_text, forest_of, tree_of

NOW = parse_instant("2024-06-01T01:00:00Z")


def condition(type_: str, status: str, reason: str, message: str = "") -> Raw:
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2024-06-01T00:50:00Z",
        "observedGeneration": 1,
    }


PLAN = {
    "hash": "h",
    "maxDepth": 1,
    "joins": [
        {
            "number": 1,
            "fieldName": "address",
            "source": "address",
            "parent": "",
            "relationship": "customer-id",
            "depth": 1,
        }
    ],
}
PUBLISHED: Raw = {
    "conditions": [condition("Ready", "True", "Published", "2 snapshots are published")],
    "plan": PLAN,
    "lastRun": {
        "id": "ods-wide-1",
        "phase": "Succeeded",
        "startedAt": "2024-06-01T00:30:00Z",
        "finishedAt": "2024-06-01T00:40:00Z",
        "published": 2,
    },
    "latestSnapshot": {
        "time": "2024-05-31T00:00:00Z",
        "publishedAt": "2024-06-01T00:40:00Z",
        "partition": "p",
        "rows": 12345,
        "files": 4,
        "bytes": 1000,
        "joins": [{"child": "address", "in": 3, "out": 3, "matched": 2, "nullKeys": 0}],
        "warnings": ["`customer`: 1 of 2 rows have a NULL join key"],
    },
    "snapshots": [
        {"time": "2024-05-31T00:00:00Z", "rows": 12345},
        {"time": "2024-05-30T00:00:00Z", "rows": 1},
    ],
    "snapshotCount": 7,
    "nextRunTime": "2024-06-02T00:00:00Z",
}
STALLED: Raw = {
    "conditions": [
        condition("Ready", "False", "TreeAmbiguous", "two trees are equally good; exclude one"),
        condition("Stalled", "True", "TreeAmbiguous", "two trees are equally good; exclude one"),
    ]
}
QUEUED: Raw = {
    "conditions": [condition("Ready", "False", "RunQueued")],
    "currentRun": {
        "name": "ods-wide-2",
        "id": "ods-wide-2",
        "phase": "Queued",
        "since": "2024-06-01T00:58:00Z",
        "startedAt": "2024-06-01T00:58:00Z",
        "waitingFor": "position 3 of 7 in the queue",
        "attempt": 1,
    },
}


def view(*raws: Raw, **statuses: Raw) -> NamespaceView:
    resources: dict[str, Any] = {}
    for raw in raws:
        given = {**raw, "metadata": {**raw["metadata"], "generation": 1}}
        if raw["metadata"]["name"] in statuses:
            given["status"] = statuses[raw["metadata"]["name"]]
        resource = KIND_BY_NAME[raw["kind"]].model.parse(given)
        resources[resource.identity] = resource
    return NamespaceView(resources, NOW, "default")


def model(**statuses: Raw) -> NamespaceView:
    key = relationship(
        "customer-id", (["customer"], [join_key("id")]), (["address"], [join_key("customer")])
    )
    return view(files("customer"), files("address"), key, output(), **statuses)


def text_of(*trees: object, width: int = 200, encoding: str = "utf-8") -> str:
    stream = io.TextIOWrapper(io.BytesIO(), encoding)
    console = Console(file=stream, width=width)
    for tree in trees:
        console.print(tree)
    stream.seek(0)
    return stream.read()


def test_a_published_output_shows_its_snapshots_and_its_next_run() -> None:
    text = text_of(tree_of(model(wide=PUBLISHED), "OutputDataset/wide"))
    assert "OutputDataset/wide  Ready (Published)" in text
    assert "2024-05-31T00:00:00Z  12,345 rows, 4 files, 1,000 bytes, published 20m ago" in text
    assert text.count("warning: `customer`: 1 of 2 rows have a NULL join key") == 1
    assert "and 5 older" in text
    assert "next run: 2024-06-02T00:00:00Z (in 23h)" in text


@pytest.mark.plugged
def test_a_published_output_shows_how_sources_are_joined() -> None:
    text = text_of(tree_of(model(wide=PUBLISHED), "OutputDataset/wide"))
    assert "DataSource/customer  root" in text
    assert "DataSource/address  as address" in text
    assert "│   └── address  by customer-id, 66.7% matched" in text


@pytest.mark.plugged
def test_a_published_output_shows_a_timeline_of_its_newest_snapshots() -> None:
    text = text_of(tree_of(model(wide=PUBLISHED), "OutputDataset/wide"), width=60)
    _, _, after = text.partition("timeline\n")
    marks, dates, *_ = after.splitlines()
    assert marks.startswith("│   published  2  ████")
    assert (dates.split()[1:], len(dates) <= 60) == (["2024-05-30", "2024-06-01"], True)


@pytest.mark.plugged
def test_a_snapshot_that_failed_last_is_on_the_timeline() -> None:
    failed = {"phase": "Failed", "failed": ["2024-06-01T00:00:00Z CHECK_FAILED"]}
    status = {**PUBLISHED, "lastRun": {**PUBLISHED["lastRun"], **failed}}
    text = text_of(tree_of(model(wide=status), "OutputDataset/wide"))
    assert "│   failed     1  ····" in text


@pytest.mark.plugged
def test_drawings_are_in_ascii_where_the_terminal_shows_nothing_else() -> None:
    text = text_of(tree_of(model(wide=PUBLISHED), "OutputDataset/wide"), encoding="ascii")
    assert "|   `-- address  by customer-id, 66.7% matched" in text
    assert "|   published  2  ####" in text


@pytest.mark.plugged
def test_sources_that_the_join_tree_shows_are_listed_only_if_they_need_a_look() -> None:
    ready: Raw = {"conditions": [condition("Ready", "True", "Valid")]}
    text = text_of(tree_of(model(wide=PUBLISHED, customer=ready), "OutputDataset/wide"))
    assert "sources: 2, 1 of them ready" in text
    assert "DataSource/customer" not in text
    assert "DataSource/address  as address  not reconciled yet" in text


def test_a_stalled_output_shows_its_reason_once() -> None:
    text = text_of(tree_of(model(wide=STALLED), "OutputDataset/wide"))
    assert "not Ready (TreeAmbiguous)" in text
    assert text.count("exclude one") == 1


def test_a_queued_run_shows_what_it_waits_for() -> None:
    text = text_of(tree_of(model(wide=QUEUED), "OutputDataset/wide"))
    assert "ods-wide-2  Queued for 2m, attempt 2: waits for position 3 of 7" in text


def test_a_source_that_does_not_exist_is_named_as_such() -> None:
    text = text_of(tree_of(view(output(), files("customer")), "OutputDataset/wide"))
    assert "DataSource/address  as address  does not exist" in text


def test_a_resource_without_status_was_not_seen_yet() -> None:
    assert "not reconciled yet" in text_of(tree_of(model(), "OutputDataset/wide"))


def test_a_status_of_an_older_generation_is_marked() -> None:
    before = {"conditions": [condition("Ready", "True", "Published") | {"observedGeneration": 0}]}
    assert "of an older generation" in text_of(tree_of(model(wide=before), "OutputDataset/wide"))


def test_the_forest_shows_every_resource() -> None:
    shown = model(wide=PUBLISHED)
    text = text_of(*forest_of(shown))
    assert all(name in text for name in shown.resources)


def test_a_source_shows_what_it_reads_however_deep() -> None:
    virtual = simple("customer", "SELECT * FROM c", "people")
    shown = view(virtual, files("people"), files("address"), output())
    text = text_of(tree_of(shown, "OutputDataset/wide"))
    assert "DataSource/people" in text
    assert text_of(*forest_of(shown)).count("DataSource/people") == 1


def test_sources_that_read_each_other_end_where_the_circle_closes() -> None:
    circle = simple("one", "SELECT * FROM c", "two"), simple("two", "SELECT * FROM c", "one")
    assert text_of(*forest_of(view(*circle))).count("DataSource/one") == 2


def test_a_source_that_only_an_index_is_about_is_shown() -> None:
    target = {"dataSource": "customer"}
    indexes = [{"type": "MIN_MAX", "column": "a"}]
    store = {"parquet": {"location": "file:///indexes/"}}
    spec = {"target": target, "indexes": indexes, "store": store}
    shown = view(files("customer"), document("SkippingIndex", "own", spec))
    assert "DataSource/customer" in text_of(*forest_of(shown))


@pytest.mark.parametrize("unused", ["lonely", "forgotten"])
def test_a_source_that_nothing_uses_stands_by_itself(unused: str) -> None:
    trees = list(forest_of(view(files("customer"), files("address"), output(), files(unused))))
    assert f"DataSource/{unused}" in text_of(trees[-1])


def test_a_failed_run_shows_its_reason_and_remedy() -> None:
    failed = {**PUBLISHED["lastRun"], "phase": "Failed", "reason": "BucketNotFound"}
    text = text_of(tree_of(model(wide={**PUBLISHED, "lastRun": failed}), "OutputDataset/wide"))
    assert "last run: ods-wide-1  Failed (BucketNotFound) 20m ago" in text
    assert "what to do: Create the bucket" in text
    stopped = {**failed, "phase": "Stopped", "reason": "RunStopped"}
    text = text_of(tree_of(model(wide={**PUBLISHED, "lastRun": stopped}), "OutputDataset/wide"))
    assert "what to do" not in text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"),
        (0, "0s"),
        (59.9, "59s"),
        (60, "1m"),
        (190, "3m10s"),
        (3_600, "1h"),
        (3_659, "1h"),
        (3_660, "1h1m"),
        (36_000, "10h"),
        (37_000, "10h"),
        (86_400 * 12 + 5_000, "12d"),
    ],
)
def test_a_duration_is_shown_in_the_largest_units(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("time", "text"),
    [("2024-06-01T00:00:00Z", "1h ago"), ("2024-06-01T03:00:00+00:00", "in 2h")],
)
def test_a_time_is_shown_relative_to_now(time: str, text: str) -> None:
    assert ago(time, parse_instant("2024-06-01T01:00:00Z")) == text


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_spelling_of_a_kind_names_it(kind) -> None:  # type: ignore[no-untyped-def]
    for spelling in (kind.name, kind.singular, kind.plural, kind.short_name):
        assert str(parse_name(f"{spelling}/orders")) == f"{kind.name}/orders"


def test_a_name_without_a_kind_is_an_output() -> None:
    assert str(parse_name("orders")) == "OutputDataset/orders"


@pytest.mark.parametrize("text", ["outputs/orders", "ods/", "/orders", ""])
def test_what_names_nothing_is_refused_with_the_kinds(text: str) -> None:
    with pytest.raises(InvalidDeclarations) as refused:
        parse_name(text)
    assert "OutputDataset (ods)" in refused.value.findings[0].expected


def test_a_kind_without_runs_cannot_be_triggered() -> None:
    with pytest.raises(InvalidDeclarations, match="has no runs"):
        parse_runnable("dsrc/orders")
