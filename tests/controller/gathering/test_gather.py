"""Gathering: what is observed of one resource, and what it is observed from."""

from typing import Any

import pytest
from support.declared.declarations import (
    document,
    files,
    model,
    output,
    relationship,
    simple,
    spoilt,
)
from support.declared.declarations import key as column
from support.operator.reviews import (
    VerdictsAtOnce,
    config_map,
    driver_pod,
    key,
    newer,
    report,
    stored,
)

from snaploom.models.allowances import Allowances
from snaploom.models.common import EpochNanos, parse_instant
from snaploom.models.skippingindex import SkippingIndex
from snaploom.validate.validator import validate
from snaploom_operator.decision import (
    ObservedIndex,
    ObservedOutput,
    ObservedResource,
    Refusal,
    Unparsable,
)
from snaploom_operator.gather import gatherer as gather
from snaploom_operator.gather.gatherer import Gatherer, cluster_findings
from snaploom_operator.objects import FINALIZER, Ref
from snaploom_operator.store.store import Store

NOW = parse_instant("2026-02-01T00:00:00Z")
CUSTOMER, ADDRESS, RELATIONSHIP, OUTPUT = MODEL = [stored(raw) for raw in model()]
PASSWORD = {"fromPlaintext": {"user": "u", "password": "p"}}
TABLE = {
    "driver": "POSTGRESQL",
    "database": "shop",
    "credentials": PASSWORD,
    "tableReference": "customer",
    "snapshot": {"fromReadTime": {}},
}


def index(**changes: Any) -> Any:
    spec = {
        "target": {"outputDataset": "wide"},
        "indexes": [{"type": "MIN_MAX", "column": "day"}],
        "store": {"parquet": {"location": "/indexes/"}},
    }
    return stored(document("SkippingIndex", "by-day", spec | changes))


def published(raw: Any, sequence: int, at: str = "2026-01-02T00:00:00Z") -> Any:
    latest = {
        "time": "2026-01-01T00:00:00Z",
        "publishedAt": at,
        "partition": "p=1",
        "rows": 1,
        "files": 1,
        "bytes": 1,
    }
    pointer = {"uri": "/out/", "sequence": sequence}
    return newer(spoilt(raw, "status", {"manifest": pointer, "latestSnapshot": latest}))


def reading(name: str, folder: str) -> list[Any]:
    """An output `name` of one source that reads a folder."""
    source = stored(files(f"{name}-source", sourceUriGlobs=[f"{folder}data/*/*.parquet"]))
    changes = {
        "dataModel.rootDataSource.dataSource": f"{name}-source",
        "dataModel.otherDataSources": [],
        "dataModel.dataRelationships": [],
    }
    return [source, stored(output(name, **changes))]


def never(ref: Ref) -> None:
    raise AssertionError(f"{ref} waited for a verdict")


async def observed(
    objects: list[Any], raw: Any, refusal: Refusal | None = None
) -> ObservedResource | Unparsable | None:
    store = Store()
    for each in objects:
        store.put(each)
    gatherer = Gatherer(store, lambda: NOW, VerdictsAtOnce(), never, lambda ref: refusal)
    return await gatherer.observe(key(raw))


async def output_of(objects: list[Any], raw: Any = OUTPUT) -> ObservedOutput:
    found = await observed(objects, raw)
    assert isinstance(found, ObservedOutput)
    return found


async def index_of(objects: list[Any], raw: Any) -> ObservedIndex:
    found = await observed([*objects, raw], raw)
    assert isinstance(found, ObservedIndex)
    return found


async def test_a_sound_output_has_bundle_plan_and_hash() -> None:
    found = await output_of(MODEL)
    assert (found.findings, found.faulty, found.now) == ((), (), NOW)
    assert [source.name for source in found.bundle.data_sources] == ["address", "customer"]
    assert [join.source for join in found.plan.tree.joins] == ["address"]
    assert len(found.declarations) == 64


async def test_what_is_gone_is_not_observed() -> None:
    assert await observed([], OUTPUT) is None


async def test_what_cannot_be_parsed_is_observed_with_its_findings() -> None:
    spoilt_output = newer(spoilt(OUTPUT, "spec.dataModel.maxDepth", "3"))
    found = await observed([spoilt_output], OUTPUT)
    assert isinstance(found, Unparsable)
    assert [finding.path for finding in found.findings] == ["spec.dataModel.maxDepth"]
    assert found.now == NOW


async def test_what_cannot_be_parsed_and_is_deleted_can_lose_its_finalizer() -> None:
    spoilt_output = newer(spoilt(OUTPUT, "spec.dataModel.maxDepth", "3"))
    deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [FINALIZER]}
    spoilt_output["metadata"] |= deleted
    found = await observed([spoilt_output], OUTPUT)
    assert isinstance(found, Unparsable)
    assert (found.is_deleting, found.has_finalizer) == (True, True)


async def test_a_misspelt_reference_names_what_was_probably_meant() -> None:
    misspelt = spoilt(OUTPUT, "spec.dataModel.rootDataSource.dataSource", "custmer")
    found = await output_of([CUSTOMER, ADDRESS, RELATIONSHIP, misspelt])
    missing = [finding for finding in found.findings if finding.code == "SL130"]
    assert [finding.hint for finding in missing] == ["did you mean `customer`?"]


async def test_a_name_of_another_namespace_is_no_guess() -> None:
    elsewhere = stored(files("custome"), namespace="others")
    found = await output_of([elsewhere, ADDRESS, RELATIONSHIP, OUTPUT])
    missing = [finding for finding in found.findings if finding.code == "SL130"]
    assert "add `DataSource/customer`" in [finding.hint for finding in missing]


async def test_a_missing_reference_is_an_error_of_the_referring_resource() -> None:
    found = await output_of([CUSTOMER, RELATIONSHIP, OUTPUT])
    missing = [finding for finding in found.findings if finding.code == "SL130"]
    assert [finding.found for finding in missing] == ["address"]
    assert found.bundle is None
    assert found.faulty == ("DataRelationship/customer-id",)


@pytest.mark.parametrize(
    "spoiling",
    [
        pytest.param(("spec.hdfsLike.sourceUriPrefix", "/elsewhere/"), id="wrong"),
        pytest.param(("spec.hdfsLike.formatt", "orc"), id="not parsable"),
    ],
)
async def test_what_it_needs_and_what_is_wrong_is_named(spoiling: tuple[str, Any]) -> None:
    wrong = newer(spoilt(CUSTOMER, *spoiling), generation=2)
    found = await output_of([wrong, ADDRESS, RELATIONSHIP, OUTPUT])
    assert found.faulty == ("DataSource/customer",)
    assert (found.findings, found.bundle, found.plan) == ((), None, None)


async def test_a_source_that_it_does_not_read_may_be_wrong() -> None:
    unused = stored(files("unused", sourceUriPrefix="/elsewhere/"))
    names = (["customer", "address", "unused"], [column("customer_id")])
    wider = stored(relationship("customer-id", names))
    found = await output_of([CUSTOMER, ADDRESS, unused, wider, OUTPUT])
    assert found.faulty == ()
    assert found.bundle is not None


async def test_an_ambiguous_tree_is_a_finding_without_a_plan() -> None:
    twin = stored(relationship("twin", (["customer", "address"], [column("other_id")])))
    names = [{"name": "customer-id"}, {"name": "twin"}]
    ambiguous = stored(output(**{"dataModel.dataRelationships": names}))
    found = await output_of([CUSTOMER, ADDRESS, RELATIONSHIP, twin, ambiguous])
    assert [finding.code for finding in found.findings] == ["SL301"]
    assert found.plan is None


async def test_a_password_in_the_spec_is_an_error() -> None:
    source = stored(document("DataSource", "customer", {"jdbc": TABLE}))
    found = await observed([source], source)
    assert isinstance(found, ObservedResource)
    assert [f.code for f in found.findings if f.is_error and f.code == "SL143"] == ["SL143"]


async def test_folders_that_overlap_are_an_error_of_the_inner_one() -> None:
    inner = stored(output("inner", **{"outputFolder.folderUri": "/out/wide/inner/"}))
    assert [f.code for f in (await output_of([*MODEL, inner], inner)).findings] == ["SL174"]
    assert (await output_of([*MODEL, inner])).findings == ()


async def test_folder_that_an_older_output_has_is_an_error_of_the_newer_one() -> None:
    folder = {"outputFolder.folderUri": "/out/shared/"}
    newer, older = (stored(output(name, **folder)) for name in ("a", "wide"))
    newer["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
    older["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    objects = [*MODEL[:-1], older, newer]
    assert (await output_of(objects, older)).findings == ()
    assert [f.code for f in (await output_of(objects, newer)).findings] == ["SL174"]


async def test_table_that_an_older_output_has_is_an_error_of_the_newer_one() -> None:
    place = {"dataFormat": "ICEBERG", "table": {"catalog": "lake", "name": "sales.orders"}}
    newer, older = (
        stored(output(name, **{"outputFolder.folderUri": f"/{name}/"})) for name in ("a", "wide")
    )
    for each, day in ((newer, 2), (older, 1)):
        each["spec"]["outputFolder"] |= place
        each["metadata"]["creationTimestamp"] = f"2026-01-0{day}T00:00:00Z"
    found = await output_of([*MODEL[:-1], older, newer], newer)
    assert [f.path for f in found.findings if f.code == "SL174"] == ["spec.outputFolder.table"]


async def test_outputs_that_read_each_other_are_an_error() -> None:
    first, second = reading("first", "/out/second/"), reading("second", "/out/first/")
    found = await output_of([*first, *second], first[1])
    assert [finding.code for finding in found.findings] == ["SL181"]


async def test_users_are_counted_and_named() -> None:
    virtual = stored(simple("virtual", "SELECT * FROM c"))
    found = await observed([*MODEL, virtual], CUSTOMER)
    assert isinstance(found, ObservedResource)
    assert found.used_by.count == 3
    assert found.used_by.names == (
        "DataRelationship/customer-id",
        "DataSource/virtual",
        "OutputDataset/wide",
    )


@pytest.mark.parametrize(("kept", "expected"), [("2025-01-01", "ods-1"), ("2027-01-01", "old")])
async def test_the_newest_look_at_a_source_counts(kept: str, expected: str) -> None:
    status = {"lastSeen": {"run": "old", "at": f"{kept}T00:00:00Z"}}
    source = newer(spoilt(CUSTOMER, "status", status))
    reported = report(OUTPUT, "ods-1", seen=[{"source": "customer", "snapshots": 3}])
    found = await observed([source, reported], CUSTOMER)
    assert isinstance(found, ObservedResource)
    assert found.last_seen.run == expected


async def test_everything_of_its_runs_is_there() -> None:
    others = [
        config_map(OUTPUT, "ods-1", "bundle"),
        report(OUTPUT, "ods-1"),
        driver_pod(OUTPUT, "ods-1", phase="Running"),
    ]
    runs = (await output_of([*MODEL, *others])).runs
    assert [each.name for each in runs.config_maps] == ["ods-1-bundle", "ods-1-report"]
    assert runs.reports["ods-1"].report is not None
    assert runs.driver_pods["ods-1"].phase == "Running"


async def test_a_report_of_another_run_does_not_count() -> None:
    strange = report(OUTPUT, "ods-1", runId="ods-2")
    runs = (await output_of([*MODEL, strange])).runs
    assert runs.reports["ods-1"].report is None
    assert runs.reports["ods-1"].trouble


async def test_a_driver_that_does_not_start_shows_its_reason() -> None:
    waiting = {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    pod = driver_pod(OUTPUT, "ods-1", phase="Pending", containerStatuses=[waiting])
    runs = (await output_of([*MODEL, pod])).runs
    assert runs.driver_pods["ods-1"].trouble == "ImagePullBackOff: no such image"


async def test_upstream_follows_what_the_read_output_publishes() -> None:
    reader = reading("reader", "/out/wide/")
    before = await output_of([*MODEL, *reader], reader[1])
    assert (before.unpublished, before.upstream) == (("wide",), "")
    once, twice = [
        await output_of([*MODEL, *reader, published(OUTPUT, sequence)], reader[1])
        for sequence in (1, 2)
    ]
    assert once.unpublished == ()
    assert len({before.upstream, once.upstream, twice.upstream}) == 3


async def test_upstream_is_found_by_its_table_in_a_catalog() -> None:
    named = {"catalog": "lake", "name": "shop.wide"}
    spec = {"format": "iceberg", "table": named, "snapshot": {"fromReadTime": {}}}
    source, reader = reading("reader", "/elsewhere/")
    source["spec"]["hdfsLike"] = spec
    read = spoilt(OUTPUT, "spec.outputFolder.dataFormat", "ICEBERG")
    read = newer(spoilt(read, "spec.outputFolder.table", named))
    assert (await output_of([*MODEL[:-1], read, source, reader], reader)).unpublished == ("wide",)


async def test_an_output_that_reads_no_other_has_no_upstream() -> None:
    assert (await output_of(MODEL)).upstream == ""


async def test_upstream_of_an_index_is_its_output() -> None:
    assert (await index_of(MODEL, index())).upstream == ""
    assert (await index_of([*MODEL, published(OUTPUT, 1)], index())).upstream != ""


@pytest.mark.parametrize(("refreshed", "is_overdue"), [("2026-01-01", True), ("2026-01-03", False)])
async def test_an_index_is_overdue_after_a_publication(refreshed: str, is_overdue: bool) -> None:
    resource = index()
    resource["status"] = {"lastRefreshed": f"{refreshed}T00:00:00Z"}
    assert (await index_of([*MODEL, published(OUTPUT, 1)], resource)).is_overdue is is_overdue


async def test_an_index_of_an_output_without_snapshots_waits() -> None:
    found = await index_of(MODEL, index())
    assert found.unpublished == ("wide",)
    assert found.bundle is not None


@pytest.mark.parametrize(
    ("path", "value", "is_same"),
    [
        pytest.param("spec.run.suspend", True, True, id="suspend"),
        pytest.param("spec.run.startTimeoutSeconds", 60, True, id="timeout"),
        pytest.param("metadata.labels", {"team": "a"}, True, id="label"),
        pytest.param("spec.run.acceptRootChange", True, False, id="acceptRootChange"),
        pytest.param("spec.run.adoptFolder", True, False, id="adoptFolder"),
        pytest.param("spec.dataModel.maxDepth", 3, False, id="maxDepth"),
    ],
)
async def test_only_what_changes_the_result_changes_the_hash(path, value, is_same):
    other = newer(spoilt(OUTPUT, path, value), generation=2)
    before, after = await output_of(MODEL), await output_of([*MODEL, other])
    assert (before.declarations == after.declarations) is is_same
    assert after.declarations


async def test_a_refusal_is_handed_on() -> None:
    refusal = Refusal("NameTaken", "it is taken")
    found = await observed(MODEL, OUTPUT, refusal)
    assert isinstance(found, ObservedOutput)
    assert found.refusal == refusal


async def test_what_is_judged_a_few_at_a_time_is_judged_the_same(monkeypatch):
    expected = await output_of(MODEL)
    monkeypatch.setattr(gather, "AT_ONCE", 1)
    found = await output_of(MODEL)
    assert (found.findings, found.declarations) == (expected.findings, expected.declarations)


async def test_declarations_are_judged_again_when_something_they_need_changes() -> None:
    store = Store()
    for each in MODEL:
        store.put(each)
    gatherer = Gatherer(store, lambda: EpochNanos(0), VerdictsAtOnce(), never)
    before = await gatherer.observe(key(OUTPUT))
    store.put(newer(spoilt(CUSTOMER, "spec.hdfsLike.format", "orc"), generation=2))
    after = await gatherer.observe(key(OUTPUT))
    assert isinstance(before, ObservedOutput)
    assert isinstance(after, ObservedOutput)
    assert before.declarations != after.declarations


def an_index(host: str) -> SkippingIndex:
    spec = {
        "target": {"path": {"uri": "/data", "format": "parquet"}},
        "indexes": [{"type": "MIN_MAX", "column": "a"}],
        "store": {"openSearch": {"host": host, "port": 9200}},
    }
    return SkippingIndex.parse(document("SkippingIndex", "a", spec))


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "::1"])
def test_a_server_that_the_job_would_refuse_is_refused_before(host: str) -> None:
    index = an_index(host)
    (found,) = cluster_findings(index)
    assert (found.code, found.is_error) == ("SL190", True)
    entry = found.hint.rpartition("endpoints=")[2].removesuffix(")")
    assert cluster_findings(index, allow=Allowances(endpoints=(entry,))) == ()
    assert not [each for each in validate([index]) if each.code == "SL190"]


def test_no_entry_is_proposed_for_what_no_list_allows() -> None:
    (found,) = cluster_findings(an_index("169.254.169.254"))
    assert found.hint == "name another server"


def test_an_ordinary_server_is_accepted() -> None:
    assert cluster_findings(an_index("search.example")) == ()
