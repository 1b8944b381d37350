"""Events satisfy the specification, and report what happened."""

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from openlineage.client.event_v2 import RunEvent
from openlineage.client.serde import Serde
from plugins.lineage.lineagecolumns import ADDRESS, CUSTOMER, WOVEN
from support.declared.declarations import Raw, model, parsed
from support.servers.openlineage import read_event

from snaploom.models.common import EpochNanos, parse_instant
from snaploom.models.report import (
    Report,
    RunPhase,
    SnapshotReason,
    SnapshotReport,
    SourceSnapshot,
    Unpublished,
)
from snaploom.plan.bundles import bundle_for
from snaploom.plugins.lineage.events import LineageRun, end_of, events_of, fault_of, start_of
from snaploom.run.runevents import (
    Event,
    JoinPlanned,
    RunPlanned,
    SnapshotLeftOut,
    SnapshotPublished,
    SnapshotStarted,
    TasksDone,
    WovenColumns,
)

ID = UUID("018f0000-0000-7000-8000-000000000000")
AT = parse_instant("2020-01-03T04:05:06.123456789Z")
DAY = "2020-01-01T00:00:00Z"
PUBLISHED = SnapshotReport(
    time=DAY,
    partition="snapshot_epoch=1577836800000",
    rows=7,
    files=2,
    bytes=900,
    seconds=1.5,
    sequence=3,
    sources=(
        SourceSnapshot(field_name="", source="customer", time=DAY),
        SourceSnapshot(field_name="address", source="address", time="2019-12-31T00:00:00Z"),
    ),
)
COLUMNS = WovenColumns(json.dumps(WOVEN), {"": CUSTOMER, "address": ADDRESS})
STARTED = SnapshotStarted(1, 1, parse_instant(DAY))


def run(**metadata: str) -> LineageRun:
    raws = model()
    raws[-1]["metadata"].update(metadata)
    bundle = bundle_for(
        "OutputDataset", "wide", parsed(raws if not metadata else in_(raws, metadata))
    )
    return LineageRun(bundle, ID, "snaploom")


def in_(raws: list[Raw], metadata: dict[str, str]) -> list[Raw]:
    return [{**raw, "metadata": raw["metadata"] | metadata} for raw in raws]


def left_out(*, is_failure: bool) -> SnapshotLeftOut:
    outcome = Unpublished(
        time=DAY, partition="p", reason=SnapshotReason.SOURCE_FAILED, message="no such file"
    )
    return SnapshotLeftOut(outcome, is_failure)


def documents_of(*events: RunEvent) -> list[Raw]:
    documents = [json.loads(Serde.to_json(event)) for event in events]
    for document in documents:
        read_event(document)
    return documents


def of(event: Event, begun: str = "") -> list[Raw]:
    return documents_of(*events_of(run(), begun, event, EpochNanos(AT)))


def a_report(phase: RunPhase, message: str = "") -> Report:
    return Report(
        output="wide", run_id="r", storage_run_id="20200103-abc", phase=phase, started_at=DAY,
        message=message, spark_version="4.3.0",
    )  # fmt: skip


def names(datasets: list[Raw]) -> list[tuple[str, str]]:
    return [(each["namespace"], each["name"]) for each in datasets]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda event: event.pop("eventTime"),
        lambda event: event.update(colour="red"),
        lambda event: event.update(eventType="BEGIN"),
        lambda event: event["run"]["facets"]["nominalTime"].pop("nominalStartTime"),
        lambda event: event["run"]["facets"].update(time=event["run"]["facets"]["nominalTime"]),
        lambda event: event["run"]["facets"].update(parent=event["job"]["facets"]["jobType"]),
        lambda event: event["inputs"][0].update(name=7),
    ],
)
def test_what_is_no_event_would_be_found(spoil: Callable[[Raw], Any]) -> None:
    (event,) = of(STARTED)
    spoil(event)
    with pytest.raises(AssertionError):
        read_event(event)


def test_a_run_begins_as_the_job_of_its_output() -> None:
    (event,) = documents_of(start_of(run(), AT))
    assert (event["eventType"], event["eventTime"]) == ("START", "2020-01-03T04:05:06.123456789Z")
    assert event["job"]["namespace"] == "snaploom"
    assert event["job"]["name"] == "wide"
    assert event["run"]["runId"] == str(ID)


def test_in_a_cluster_a_job_bears_its_namespace() -> None:
    (event,) = documents_of(start_of(run(namespace="team"), AT))
    assert event["job"]["name"] == "team.wide"


def test_a_snapshot_begins_with_what_it_reads_and_writes() -> None:
    (event,) = of(STARTED)
    assert (event["eventType"], event["job"]["name"]) == ("START", "wide.snapshot")
    assert names(event["inputs"]) == [("file", "/data/address"), ("file", "/data/customer")]
    assert names(event["outputs"]) == [("file", "/out/wide/data")]
    facets = event["run"]["facets"]
    assert facets["nominalTime"]["nominalStartTime"] == DAY
    assert facets["parent"]["run"]["runId"] == str(ID)
    assert facets["parent"]["job"] == {"namespace": "snaploom", "name": "wide", "facets": {}}


def test_a_published_snapshot_has_columns_and_counts() -> None:
    (event,) = of(SnapshotPublished(PUBLISHED, COLUMNS), DAY)
    assert event["eventType"] == "COMPLETE"
    (output,) = event["outputs"]
    statistics = output["outputFacets"]["outputStatistics"]
    assert (statistics["rowCount"], statistics["fileCount"], statistics["size"]) == (7, 2, 900)
    assert output["facets"]["version"]["datasetVersion"] == "3"
    fields = output["facets"]["columnLineage"]["fields"]
    (made_of,) = fields["address.data.city"]["inputFields"]
    assert (made_of["name"], made_of["field"]) == ("/data/address", "city")
    assert made_of["transformations"] == [{"type": "DIRECT", "subtype": "IDENTITY"}]
    inside = fields["address"]["inputFields"]
    assert [each["field"] for each in inside] == ["customer_id", "city"]
    assert {each["transformations"][0]["subtype"] for each in inside} == {"TRANSFORMATION"}
    acting = output["facets"]["columnLineage"]["dataset"]
    assert {each["transformations"][0]["subtype"] for each in acting} == {"JOIN"}


def test_schemas_have_nested_fields() -> None:
    (event,) = of(SnapshotPublished(PUBLISHED, COLUMNS), DAY)
    data, address = event["outputs"][0]["facets"]["schema"]["fields"]
    assert (data["name"], data["type"]) == ("data", "struct")
    assert [inner["name"] for inner in data["fields"]] == ["customer_id", "name"]
    assert address["fields"][0]["fields"][1] == {"name": "city", "type": "string", "fields": []}
    inputs = {each["name"]: each["facets"] for each in event["inputs"]}
    assert inputs["/data/address"]["version"]["datasetVersion"] == "2019-12-31T00:00:00Z"
    (key, city) = inputs["/data/address"]["schema"]["fields"]
    assert (key["name"], city["name"]) == ("customer_id", "city")


def test_a_snapshot_is_one_run_from_beginning_to_end() -> None:
    (start,) = of(STARTED)
    (end,) = of(SnapshotPublished(PUBLISHED, None), DAY)
    assert start["run"]["runId"] == end["run"]["runId"] != str(ID)


def test_ids_of_snapshots_begin_with_the_time_of_their_run() -> None:
    one, other = run().snapshot(DAY), run().snapshot("2020-01-02T00:00:00Z")
    assert one != other
    assert one == run().snapshot(DAY)
    assert {(each.version, each.int >> 80) for each in (one, other)} == {(7, ID.int >> 80)}


def test_a_failed_snapshot_has_its_reason() -> None:
    (event,) = of(left_out(is_failure=True), DAY)
    assert event["eventType"] == "FAIL"
    assert event["run"]["facets"]["errorMessage"]["message"] == "no such file"


def test_a_snapshot_that_failed_before_it_began_begins_first() -> None:
    start, failure = of(left_out(is_failure=True))
    assert (start["eventType"], failure["eventType"]) == ("START", "FAIL")
    assert start["run"]["runId"] == failure["run"]["runId"]


def test_a_snapshot_that_was_begun_and_left_is_aborted() -> None:
    (event,) = of(left_out(is_failure=False), DAY)
    assert event["eventType"] == "ABORT"
    assert of(left_out(is_failure=False)) == []


@pytest.mark.parametrize(
    "event", [RunPlanned("wide", 1, 1), JoinPlanned(1, 1, "a"), TasksDone(1, 2)]
)
def test_progress_is_not_sent(event: Event) -> None:
    assert of(event) == []


@pytest.mark.parametrize(
    ("phase", "expected"),
    [(RunPhase.SUCCEEDED, "COMPLETE"), (RunPhase.FAILED, "FAIL"), (RunPhase.INTERRUPTED, "ABORT")],
)
def test_a_run_ends_as_in_its_report(phase: RunPhase, expected: str) -> None:
    message = "" if phase is RunPhase.SUCCEEDED else "the folder is full"
    (event,) = documents_of(end_of(run(), a_report(phase, message), AT))
    facets: Any = event["run"]["facets"]
    assert event["eventType"] == expected
    assert facets.get("errorMessage", {}).get("message", "") == message
    assert facets["tags"]["tags"][0]["value"] == "20200103-abc"
    assert facets["processing_engine"]["version"] == "4.3.0"


def test_a_fault_of_our_own_fails_the_run() -> None:
    (event,) = documents_of(fault_of(run(), AT))
    assert event["eventType"] == "FAIL"
