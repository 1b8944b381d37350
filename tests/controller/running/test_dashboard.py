"""Every panel of the dashboard shows something: a real Prometheus asks an operator at work."""

import asyncio
import json
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path

from support.cluster.chart import CHART
from support.declared.declarations import Raw, document, model, output
from support.operator.jobdouble import (
    JobDouble,
    Script,
    completes,
    failed,
    fails,
    hangs_in,
    indexed,
    published,
)
from support.operator.operatorharness import RealHarness, has_reason, is_ready
from support.operator.webhooks import WebhookClient, a_webhook
from support.servers.certificates import Authority
from support.servers.prometheus import Prometheus, running_prometheus

from snaploom.models.common import format_instant, now
from snaploom_operator.cluster.client import open_cluster
from snaploom_operator.objects import Application, ApplicationState

DEADLINE = 120.0
RECORDING = "SNAPLOOM_DASHBOARD_RECORDING"
"""Environment variable with a file for what the panels show: `make dashboard-recording`."""
RECORDED = 90.0
"""Seconds of life for a recording; it shows the last of them."""
EMPTY = {
    "Missed watch events per hour": "nothing is missed while all is well",
    "Reconcile errors, by reason": "the cluster refuses nothing while all is well",
}
"""Panels that show nothing here, and why."""


def panels() -> Iterator[tuple[str, str]]:
    board = json.loads((CHART / "dashboards" / "snaploom.json").read_text("utf-8"))
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


def played(application: Application) -> Script:
    """An output that publishes after a failure, one that goes on, one that fails, and an index."""
    at = format_instant(now())
    snapshots = published(at)
    fresh = snapshots.model_copy(
        update={"newest": snapshots.newest.model_copy(update={"published_at": at})}
    )
    built = indexed()
    facts = built.index.model_copy(update={"last_refreshed": at})
    name = application.name
    if name.startswith("ods-slow"):
        return hangs_in(ApplicationState.RUNNING)
    if name.startswith("ods-broken"):
        return fails(failed("the folder is another's", "FolderNotOurs", retryable=False))
    if name.startswith("skix-"):
        return completes(built.model_copy(update={"index": facts}))
    return fails() if application.attempt == 0 else completes(fresh)


def declarations() -> list[Raw]:
    wide = output(run={"retry": {"backoffSeconds": 1}, "freshness": {"maxAge": {"day": 1}}})
    spec = {
        "target": {"outputDataset": "wide"},
        "indexes": [{"type": "MIN_MAX", "column": "data.customer_id"}],
        "store": {"parquet": {"location": "/indexes"}},
    }
    index = document("SkippingIndex", "quick", spec)
    return [*model()[:-1], wide, output("slow"), output("broken"), index]


async def test_every_panel_shows_metrics_of_a_live_system(spark_plane, namespace, tmp_path):
    async with open_cluster(spark_plane.kubeconfig) as cluster:
        harness = RealHarness(cluster, spark_plane.kubeconfig, namespace)
        harness.double = JobDouble(cluster, played, namespace=namespace)
        await harness.start()
        try:
            async with a_webhook(cluster, tmp_path, Authority(tmp_path, "authority")) as webhook:
                targets = {
                    "operator": [harness.thread.running.metrics_port],
                    "webhook": [webhook.ports.metrics],
                }
                with running_prometheus(tmp_path, targets) as prometheus:
                    await until_asked_twice(prometheus)
                    await harness.apply(*declarations())
                    await harness.wait_for("OutputDataset/wide", is_ready)
                    await harness.wait_for("SkippingIndex/quick", is_ready)
                    await harness.wait_for("OutputDataset/broken", has_reason("RunRefused"))
                    await until_all_is_shown(prometheus, webhook)
                    if RECORDING in os.environ:
                        await live_on(harness, webhook)
                        await asyncio.to_thread(
                            record, prometheus, namespace, Path(os.environ[RECORDING])
                        )
        finally:
            await harness.stop()


async def until_asked_twice(prometheus: Prometheus) -> None:
    asked = "min(count_over_time(snaploom_queue_depth[1m]))"
    while not [
        found
        for found in await asyncio.to_thread(prometheus.query, asked)
        if float(found["value"][1]) >= 2
    ]:
        await asyncio.sleep(0.1)


async def until_all_is_shown(prometheus: Prometheus, webhook: WebhookClient) -> None:
    deadline = time.monotonic() + DEADLINE
    while True:
        empty = [
            (title, expression)
            for title, expression in panels()
            if title not in EMPTY and not await shown(prometheus, expression)
        ]
        if not empty:
            return
        await webhook.review(output())
        assert time.monotonic() < deadline, empty
        await asyncio.sleep(0.5)


async def live_on(harness: RealHarness, webhook: WebhookClient) -> None:
    """Runs, and reviews, for a while."""
    end = time.monotonic() + RECORDED
    while time.monotonic() < end:
        await harness.annotate("OutputDataset/wide", run=f"{time.monotonic()}")
        for _ in range(20):
            await harness.double.step()
            await webhook.review(output())
            await asyncio.sleep(0.2)


def record(prometheus: Prometheus, namespace: str, file: Path) -> None:
    """Write down what every panel showed, for `docs/generation/dashboardpicture.py`."""
    end = time.time()
    start, step = end - RECORDED, RECORDED / 30
    board = json.loads((CHART / "dashboards" / "snaploom.json").read_text("utf-8"))
    found = [
        {
            "title": panel["title"],
            "unit": panel["fieldConfig"]["defaults"]["unit"],
            "series": [
                drawn(target["legendFormat"], series, start)
                for target in panel["targets"]
                for series in prometheus.query_range(target["expr"], start, end, step)
            ],
        }
        for panel in board["panels"]
        if panel["type"] != "row"
    ]
    text = json.dumps({"seconds": RECORDED, "panels": found}, separators=(",", ":"))
    file.write_text(text.replace(namespace, "shop") + "\n")  # a name that no two tests share


def drawn(legend: str, series: Raw, start: float) -> Raw:
    """A series as Grafana names it, with seconds since the start; no number is no point."""
    for name, value in series["metric"].items():
        legend = legend.replace(f"{{{{{name}}}}}", value)
    points = [
        [round(at - start, 1), float(f"{float(value):.4g}")]
        for at, value in series["values"]
        if math.isfinite(float(value))
    ]
    return {"legend": legend, "points": points}


async def shown(prometheus: Prometheus, expression: str) -> bool:
    """Whether there is a value to draw: no value, and what is no number, leave a panel empty."""
    found = await asyncio.to_thread(prometheus.query, expression)
    return any(math.isfinite(float(series["value"][1])) for series in found)


def test_panels_that_show_nothing_here_exist() -> None:
    assert set(EMPTY) <= {title for title, _ in panels()}
