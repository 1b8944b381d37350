"""The operator's logs, metrics and probes."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from support.declared.declarations import document, model, output
from support.operator.jobdouble import JobDouble, completes, fails, in_turn
from support.operator.operatorharness import FakeHarness, is_ready, started
from support.operator.reviews import stored

from snaploom_operator.logs import set_up_logs
from snaploom_operator.objects import Ref, about
from snaploom_operator.serve.health import metrics_application, readiness_application


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What is logged as JSON; logging is as before at the end."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    set_up_logs("json", "info", stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)


def test_a_line_names_what_it_is_about(log: io.StringIO) -> None:
    context = about(Ref("OutputDataset", "team", "wide"), reason="NameTaken")
    logging.getLogger("snaploom").warning("it is %s", "taken", extra=context)
    line = json.loads(log.getvalue())
    assert line["resource"] == "OutputDataset/team/wide"
    assert line["reason"] == "NameTaken"
    assert (line["level"], line["message"]) == ("warning", "it is taken")


def test_an_exception_is_one_line(log: io.StringIO) -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError:
        logging.getLogger("snaploom").exception("it failed")
    (line,) = log.getvalue().splitlines()
    assert "two\nlines" in json.loads(line)["exception"]


def test_other_loggers_log_warnings_only(log: io.StringIO) -> None:
    logging.getLogger("aiohttp.access").info("an event came")
    logging.getLogger("aiohttp.access").warning("it went wrong")
    assert [json.loads(line)["message"] for line in log.getvalue().splitlines()] == [
        "it went wrong"
    ]


def test_text_is_one_line_for_people() -> None:
    stream = io.StringIO()
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    set_up_logs("text", "info", stream)
    logging.getLogger("snaploom").info(
        "hello", extra=about(Ref("DataSource", "team", "a"), reason="Valid")
    )
    root.handlers[:] = handlers
    root.setLevel(level)
    assert stream.getvalue().endswith("INFO    hello resource=DataSource/team/a reason=Valid\n")


async def test_metrics_of_state_are_current() -> None:
    harness = await started(*model())
    await harness.wait_for("OutputDataset/wide", is_ready)
    registry = harness.operator.metrics.registry

    def value(metric: str, **labels: str) -> float | None:
        return registry.get_sample_value(metric, labels)

    assert value("snaploom_resources", kind="DataSource", reason="Valid") == 2.0
    assert value("snaploom_runs_in_flight") == 0.0
    assert value("snaploom_snapshot_rows", namespace="default", name="wide") == 100.0
    passes = value("snaploom_reconcile_seconds_count", kind="OutputDataset", outcome="changed")
    assert passes is not None
    assert passes > 0


async def test_ended_runs_are_counted() -> None:
    harness = FakeHarness(double=lambda cluster: JobDouble(cluster, in_turn(fails(), completes())))
    await harness.start()
    await harness.apply(*model())
    await harness.wait_for("OutputDataset/wide", is_ready)
    registry = harness.operator.metrics.registry
    kind = {"kind": "OutputDataset"}
    failures = {**kind, "reason": "SourceNotReadable"}
    assert registry.get_sample_value("snaploom_run_failures_total", failures) == 1.0
    for phase in ("Failed", "Succeeded"):
        labels = {**kind, "phase": phase}
        assert registry.get_sample_value("snaploom_run_seconds_count", labels) == 1.0


async def test_what_runs_published_is_counted() -> None:
    harness = await started(*model())
    found = await harness.wait_for("OutputDataset/wide", is_ready)
    registry = harness.operator.metrics.registry
    wide = {"namespace": "default", "name": "wide"}

    def published(what: str) -> float | None:
        return registry.get_sample_value(f"snaploom_published_{what}_total", wide)

    last = found["status"]["lastRun"]
    assert published("snapshots") == last["published"] > 0
    assert published("rows") == last["rows"] > 0
    assert published("bytes") == last["bytes"] > 0


async def test_a_waiting_run_and_a_failed_one_are_in_metrics() -> None:
    harness = await started(*model(), double=lambda cluster: JobDouble(cluster, fails()))
    registry = harness.operator.metrics.registry
    wide = {"kind": "OutputDataset", "namespace": "default", "name": "wide"}
    await harness.settle()
    await harness.advance(120)
    waiting = {**wide, "phase": "Submitted"}
    assert registry.get_sample_value("snaploom_run_phase_age_seconds", waiting) == 120.0
    failed = {**wide, "reason": "SourceNotReadable"}
    assert registry.get_sample_value("snaploom_last_run_failed", failed) is None
    await harness.wait_for("OutputDataset/wide", lambda raw: "lastRun" in raw.get("status", {}))
    assert registry.get_sample_value("snaploom_last_run_failed", failed) == 1.0
    assert registry.get_sample_value("snaploom_no_attempt_follows", failed) is None


async def test_a_run_that_is_not_retried_is_in_metrics() -> None:
    harness = await started(
        *model()[:-1],
        output(run={"retry": {"limit": 0}}),
        double=lambda cluster: JobDouble(cluster, fails()),
    )
    await harness.wait_for("OutputDataset/wide", lambda raw: "lastRun" in raw.get("status", {}))
    await harness.settle()
    labels = {
        "kind": "OutputDataset", "namespace": "default", "name": "wide",
        "reason": "SourceNotReadable",
    }  # fmt: skip
    registry = harness.operator.metrics.registry
    assert registry.get_sample_value("snaploom_no_attempt_follows", labels) == 1.0


@pytest.mark.parametrize(
    ("status", "reason", "expected"),
    [("True", "Fresh", 1.0), ("False", "Stale", 0.0), ("False", "NeverPublished", None)],
)
async def test_freshness_is_in_metrics_for_what_was_there(status, reason, expected):
    harness = FakeHarness()
    condition = {
        "type": "SnapshotFresh", "status": status, "reason": reason, "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    (output,) = (each for each in model() if each["kind"] == "OutputDataset")
    harness.operator.store.put(stored(output, conditions=[condition]))
    labels = {"kind": "OutputDataset", "namespace": "team", "name": "wide"}
    registry = harness.operator.metrics.registry
    assert registry.get_sample_value("snaploom_fresh", labels) == expected


async def test_coverage_of_an_index_is_in_metrics() -> None:
    harness = FakeHarness()
    files = {"indexed": 3, "stale": 1, "missing": 0}
    spec = {
        "target": {"outputDataset": "wide"},
        "indexes": [{"type": "MIN_MAX", "column": "a"}],
        "store": {"parquet": {"location": "/indexes"}},
    }
    index = stored(document("SkippingIndex", "narrow", spec), state="active", files=files)
    harness.operator.store.put(index)
    registry = harness.operator.metrics.registry
    labels = {"namespace": "team", "name": "narrow"}
    assert registry.get_sample_value("snaploom_index_covered_ratio", labels) == 0.75
    assert registry.get_sample_value("snaploom_index_usable", labels) == 0.0
    built = stored(
        document("SkippingIndex", "narrow", spec),
        state="active",
        files=files,
        lastRefreshed="2026-01-01T00:00:00Z",
    )
    harness.operator.store.put(built)
    assert registry.get_sample_value("snaploom_index_usable", labels) == 1.0


async def answered(application: Any, path: str) -> tuple[int, str]:
    async with TestClient(TestServer(application)) as client:
        response = await client.get(path)
        return response.status, await response.text()


async def test_a_probe_names_what_is_missing() -> None:
    application = readiness_application(lambda: "the cache is not filled yet")
    assert await answered(application, "/readyz") == (503, "the cache is not filled yet\n")


async def test_metrics_are_in_the_form_of_prometheus() -> None:
    harness = FakeHarness()
    registry = harness.operator.metrics.registry
    status, text = await answered(metrics_application(registry), "/metrics")
    assert status == 200
    assert "# HELP snaploom_queue_depth" in text
