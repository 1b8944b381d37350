"""What has nothing to weave is found out without Spark, and ends as it would with it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.weaving.blockedspark import without_spark
from support.weaving.loom import NOW, OUTPUT, Loom, Woven, ids

from snaploom.files.listed import NoOtherFiles, SparkNeeded
from snaploom.models.common import now, parse_instant
from snaploom.models.report import Report
from snaploom.output import layout
from snaploom.run.runevents import Interruption
from snaploom.run.weaving.preflight import PlanRequest
from snaploom.run.weaving.preparation import prepare
from snaploom.run.weaving.requests import RunOptions, RunRequest
from snaploom.run.weaving.runs import EndedRun, begun_run, planned_without_spark
from snaploom.sources.sourcefiles import SourceFiles

pytestmark = [pytest.mark.spark, pytest.mark.long]

_OF_THE_RUN = ("run_id", "storage_run_id", "started_at", "finished_at", "session", "spark_version")
"""Of a Report, what no two runs share, and what only a session has."""


def idle(loom: Loom, at: str = NOW) -> Woven | None:
    bundle = loom.bundle()
    request = RunRequest((bundle,), parse_instant(at), lambda event: None, Interruption())
    run = begun_run(request, bundle, now, SourceFiles(NoOtherFiles()))
    return Woven(run.report, run.events) if isinstance(run, EndedRun) else None


def outcome(report: Report) -> dict[str, object]:
    return report.model_dump(exclude=set(_OF_THE_RUN))


@pytest.fixture
def loom(tmp_path: Path) -> Loom:
    """Three days of orders, with customers."""
    loom = Loom(tmp_path)
    loom.join("customer")
    for day in (1, 2, 3):
        loom.write("order", day, ids(*range(day)))
        loom.write("customer", day, ids(0))
    return loom


def published(loom: Loom) -> None:
    """Days that are not due any more."""


def without_customers(loom: Loom) -> None:
    loom.write("order", 4, ids(1))


def skipping(loom: Loom) -> None:
    without_customers(loom)
    loom.others[0]["snapshot"] = {"snapshotMissingMode": "SKIP_WARN"}


def foreign(loom: Loom) -> None:
    (loom.out / layout.MARKER).unlink()


def unmatched(loom: Loom) -> None:
    (loom.place / "sources/order/2024-01-02").rename(loom.place / "sources/order/no-date")


def cut_short(loom: Loom) -> None:
    loom.write("customer", 3, ids(0)).write_bytes(b"")


def moved(loom: Loom) -> None:
    loom.others[0]["fieldName"] = "client"
    loom.folder["incompatibleSchema"] = "FAIL"
    loom.others[0]["transformations"] = {"groupBy": {"fieldNames": ["id"]}}


@pytest.mark.parametrize(
    "change", [published, without_customers, skipping, foreign, unmatched, cut_short, moved]
)
def test_a_run_with_nothing_to_weave_ends_as_with_spark(spark, loom, change) -> None:
    loom.weave(spark)
    change(loom)
    found, expected = idle(loom), loom.weave(spark)
    assert outcome(found.report) == outcome(expected.report)
    assert list(found.events) == expected.events


@pytest.mark.parametrize("days", [(), (1,), (1, 3)])
def test_a_run_with_something_to_weave_is_left_to_spark(spark, loom, days) -> None:
    for day in (1, 2, 3):
        if day not in days:
            loom.write("order", day, ids(1)).unlink()
    assert (idle(loom) is None) == bool(days)


def of_day(day: int) -> list[dict[str, object]]:
    return [{"id": 1, "date": f"2024-01-{day:02d}"}]


def snapshots_in_a_column(loom: Loom, name: str) -> None:
    """Let a source have its snapshots in the column `date` rather than in its paths."""
    source = loom._source(name)
    files = source["spec"]["hdfsLike"]
    del files["sourceUriPrefix"]
    files["snapshot"]["fromFieldValue"]["fieldName"] = "date"
    loom.more.append(source)


def test_whatever_is_listed_and_published_gives_the_plan_of_a_session(spark, tmp_path_factory):
    days, sources = st.sets(st.integers(1, 6)), st.sampled_from(["order", "customer"])

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(days, days, days, st.integers(1, 25), st.sampled_from([None, 1, 2]), st.sets(sources))
    def plans_are_equal(orders, customers, first, today, limit, by_column) -> None:
        loom = Loom(tmp_path_factory.mktemp("loom"))
        loom.join(
            "customer",
            snapshot={"snapshotMissingMode": "CONTINUE_IGNORE", "timeBefore": {"day": 2}},
        )
        for source in by_column:
            snapshots_in_a_column(loom, source)
        for source, some in (("order", first), ("customer", first | customers)):
            for day in some:
                loom.write(source, day, of_day(day))
        if first:
            loom.weave(spark)
        for day in orders:
            loom.write("order", day, of_day(day))
        at, bundle = parse_instant(f"2024-01-{today:02d}T00:00:00Z"), loom.bundle()
        files = SourceFiles(NoOtherFiles())
        found = planned_without_spark(
            PlanRequest(bundle, at, RunOptions(limit=limit)), now, files, lambda: None
        )
        with prepare(spark, PlanRequest(bundle, at, RunOptions(limit=limit))) as prepared:
            assert found.plan == prepared.plan
            assert found.published == prepared.published

    plans_are_equal()


def by_column(loom: Loom) -> None:
    snapshots_in_a_column(loom, "customer")
    loom.write("customer", 4, [*of_day(4), *of_day(5)])


def with_choices(loom: Loom) -> None:
    source = loom._source("customer")
    files = source["spec"]["hdfsLike"]
    files["sourceUriGlobs"] = [files["sourceUriGlobs"][0].replace("*.parquet", "{part,x}.parquet")]
    loom.sources.remove("customer")
    loom.more.append(source)


@pytest.mark.parametrize("change", [by_column, with_choices])
def test_sources_that_only_spark_lists_are_left_to_it(loom, change) -> None:
    change(loom)
    bundle, files = loom.bundle(), SourceFiles(NoOtherFiles())
    with pytest.raises(SparkNeeded):
        planned_without_spark(PlanRequest(bundle, parse_instant(NOW)), now, files, lambda: None)


def test_what_was_listed_is_not_listed_again_in_a_session(spark, loom) -> None:
    bundle, files = loom.bundle(), SourceFiles(NoOtherFiles())
    planned_without_spark(PlanRequest(bundle, parse_instant(NOW)), now, files, lambda: None)
    loom.write("order", 4, ids(1))
    with prepare(spark, PlanRequest(bundle, parse_instant(NOW)), files=files) as prepared:
        assert [one.time for one in prepared.plan.snapshots or ()] == [
            parse_instant(f"2024-01-{day:02d}T00:00:00Z") for day in (1, 2, 3)
        ]


COMMANDS: dict[str, tuple[Callable[[str], list[str]], str]] = {
    "run": (lambda file: ["run", OUTPUT, "-f", file, "--now", NOW], "wide: nothing to publish."),
    "plan": (lambda file: ["plan", OUTPUT, "-f", file, "--now", NOW], "Nothing to publish."),
    "backfill --estimate": (
        lambda file: [
            "backfill", OUTPUT, "-f", file, "--now", NOW, "--from", "2024-01-05T00:00:00Z",
            "--to", "2024-01-09T00:00:00Z", "--estimate",
        ],
        "wide: 0 snapshots due",
    ),
    "diff": (lambda file: ["diff", OUTPUT, "-f", file, "--now", NOW], "wide: nothing would"),
}  # fmt: skip


def test_commands_with_nothing_to_weave_start_no_spark(spark, loom) -> None:
    loom.weave(spark)
    file = str(loom.save())
    for arguments, line in COMMANDS.values():
        done = without_spark(*arguments(file))
        assert (done.returncode, line in done.stdout) == (0, True), done.stderr
