"""Alerts and dashboard query exported metrics, and reasons that exist."""

import json
import re
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector
from support.cluster.chart import Raw, Rendered

from snaploom.models.common import now
from snaploom_operator.admission.webhook import AdmissionMetrics
from snaploom_operator.apply.events import Posting
from snaploom_operator.conditions import Reason
from snaploom_operator.queues import WorkQueue
from snaploom_operator.serve.metrics import EVENT_OUTCOMES, Metrics, StateCollector
from snaploom_operator.serve.pages import PagesMetrics
from snaploom_operator.store.store import Store

SUFFIXES = {
    "histogram": ("_bucket", "_count", "_sum"),
    "counter": ("_total",),
    "gauge": ("",),
}
VALUES: Raw = {
    "crds": {"enabled": False},
    "metrics": {
        "serviceMonitor": {"enabled": True},
        "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
        "dashboard": {"enabled": True},
    },
}


@cache
def rendered() -> Rendered:
    return Rendered.of(VALUES)


def exported() -> set[str]:
    """Names of the series that our processes export."""
    registry = CollectorRegistry()
    Metrics(registry)
    AdmissionMetrics(registry)
    PagesMetrics(registry)
    state: Collector = StateCollector(Store(), WorkQueue(time.monotonic), dict, now)
    families = [*registry.collect(), *state.collect()]
    return {family.name + suffix for family in families for suffix in SUFFIXES[family.type]}


def queried(expression: str) -> set[str]:
    return set(re.findall(r"\bsnaploom_[a-z_]+", expression))


def rules() -> list[Raw]:
    (group,) = rendered().of_kind("PrometheusRule")[0]["spec"]["groups"]
    found: list[Raw] = group["rules"]
    return found


def dashboard() -> Raw:
    found: Raw = json.loads(
        rendered().one("ConfigMap", "snaploom-dashboard")["data"]["snaploom.json"]
    )
    return found


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in rules())
    for panel in dashboard()["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))


def test_queried_series_are_exported() -> None:
    for expression in expressions():
        assert queried(expression), expression
        assert queried(expression) <= exported(), expression
        assert expression.count("(") == expression.count(")"), expression


def test_every_outcome_of_an_event_is_exported_from_the_start() -> None:
    assert {posting.value for posting in Posting} == set(EVENT_OUTCOMES)


def test_stalled_resources_are_looked_for_by_real_reasons() -> None:
    (rule,) = (each for each in rules() if each["alert"] == "SnaploomResourcesStalled")
    (reasons,) = re.findall(r'reason=~"([^"]+)"', rule["expr"])
    assert {Reason(reason) for reason in reasons.split("|")} >= {Reason.INVALID, Reason.STALE}


def test_alerts_describe_the_fault() -> None:
    for rule in rules():
        annotations: Any = rule["annotations"]
        assert annotations["summary"].endswith(".")
        assert annotations["description"]
        assert rule["labels"]["severity"] in ("warning", "critical")
    assert len({rule["alert"] for rule in rules()}) == len(rules())


def test_dashboard_begins_with_the_overview() -> None:
    found = [panel["title"] for panel in dashboard()["panels"] if panel["type"] == "row"]
    assert found == ["Overview", "Outputs", "Runs", "Indexes", "API server", "Webhook"]
    assert dashboard()["panels"][0]["title"] == "Overview"


def test_resources_that_are_not_ready_are_counted_by_real_reasons() -> None:
    (panel,) = (each for each in dashboard()["panels"] if each["title"] == "Resources not Ready")
    (reasons,) = re.findall(r'reason=~"([^"]+)"', panel["targets"][0]["expr"])
    assert {Reason(reason) for reason in reasons.split("|")} >= {Reason.INVALID, Reason.STALE}


def test_panels_do_not_overlap() -> None:
    places = [
        (x, y)
        for panel in dashboard()["panels"]
        for grid in [panel["gridPos"]]
        for x in range(grid["x"], grid["x"] + grid["w"])
        for y in range(grid["y"], grid["y"] + grid["h"])
    ]
    assert len(places) == len(set(places))


def test_prometheus_and_grafana_find_their_objects() -> None:
    (monitor,) = rendered().of_kind("ServiceMonitor")
    service = rendered().one("Service", "snaploom-metrics")
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    assert wanted <= service["metadata"]["labels"].items()
    others = [each for each in rendered().of_kind("Service") if each != service]
    assert not [each for each in others if wanted <= each["metadata"]["labels"].items()]
    assert monitor["spec"]["endpoints"][0]["port"] in {
        port["name"] for port in service["spec"]["ports"]
    }
    (rule,) = rendered().of_kind("PrometheusRule")
    assert rule["metadata"]["labels"]["release"] == "prometheus"
    board = rendered().one("ConfigMap", "snaploom-dashboard")
    assert board["metadata"]["labels"]["grafana_dashboard"] == "1"
