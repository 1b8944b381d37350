"""Each alert of the chart fires when it should, and not before, as promtool finds."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import yaml
from support.cluster.chart import Raw, Rendered
from support.servers.prometheus import promtool

WIDE = {"kind": "OutputDataset", "namespace": "shop", "name": "wide"}
PLACE = 'kind="OutputDataset",namespace="shop",name="wide"'
INDEX = 'namespace="shop",name="quick"'


@dataclass(frozen=True)
class Case:
    """The series that an alert sees, a sample a minute, and what it is after some minutes."""

    alert: str
    series: Mapping[str, str]
    """Values by series, in promtool's notation."""
    minutes: int
    labels: Mapping[str, str] | None = None
    """What it is fired with, besides name and severity; None where it must not fire."""
    summary: str = ""


FIRES = [
    Case("SnaploomOperatorAway", {}, 11, {}, "No Snaploom operator exports metrics."),
    Case("SnaploomNobodyLeads", {"snaploom_leader": "0x10"}, 6, {},
         "No operator holds the Lease."),
    Case("SnaploomQueueStuck", {"snaploom_queue_age_seconds": "400+60x20"}, 11, {},
         "A resource has waited in the work queue for minutes."),
    Case("SnaploomWatchSilent", {'snaploom_watch_age_seconds{kind="DataSource"}': "0+60x60"}, 27,
         {"kind": "DataSource"}, "The watch of DataSource delivers no events."),
    Case("SnaploomReconcileFails",
         {'snaploom_reconcile_failures_total{reason="NotAllowed"}': "0+30x40"}, 30,
         {"reason": "NotAllowed"}, "The cluster refuses what the operator does: NotAllowed."),
    Case("SnaploomResourcesStalled",
         {'snaploom_resources{kind="DataSource",reason="Invalid"}': "2x40"}, 31,
         {"kind": "DataSource", "reason": "Invalid"},
         "2 of kind DataSource wait for a change: Invalid."),
    Case("SnaploomInternalError",
         {'snaploom_resources{kind="DataSource",reason="InternalError"}': "1x10"}, 6,
         {"kind": "DataSource"}, "Bug in Snaploom, with a DataSource."),
    Case("SnaploomRunsFail",
         {'snaploom_run_failures_total{kind="OutputDataset",reason="OutOfMemory"}': "0+1x20"}, 15,
         {"kind": "OutputDataset", "reason": "OutOfMemory"},
         "Runs of kind OutputDataset fail: OutOfMemory."),
    Case("SnaploomRunFailed",
         {f'snaploom_last_run_failed{{{PLACE},reason="SourceNotReadable"}}': "1x20"}, 11,
         WIDE | {"reason": "SourceNotReadable"},
         "The last run of OutputDataset shop/wide failed: SourceNotReadable."),
    Case("SnaploomNoAttemptFollows",
         {f'snaploom_no_attempt_follows{{{PLACE},reason="SourceNotReadable"}}': "1x20"}, 6,
         WIDE | {"reason": "SourceNotReadable"},
         "The last run of OutputDataset shop/wide failed, and is not retried: "
         "SourceNotReadable."),
    Case("SnaploomSnapshotStale", {f"snaploom_fresh{{{PLACE}}}": "1x5 0x20"}, 22, WIDE,
         "OutputDataset shop/wide is stale."),
    Case("SnaploomRunStuck",
         {f'snaploom_run_phase_age_seconds{{{PLACE},phase="Submitted"}}': "0+60x60"}, 40,
         WIDE | {"phase": "Submitted"},
         "The run of OutputDataset shop/wide is Submitted for 40m 0s."),
    Case("SnaploomRunStuck",
         {f'snaploom_run_phase_age_seconds{{{PLACE},phase="Running"}}': "21600+60x60"}, 20,
         WIDE | {"phase": "Running"},
         "The run of OutputDataset shop/wide is Running for 6h 20m 0s."),
    Case("SnaploomSkippingUnused", {f"snaploom_index_usable{{{INDEX}}}": "0x90"}, 61,
         {"namespace": "shop", "name": "quick"},
         "Queries skip few files with SkippingIndex shop/quick, "
         "which is not built or covers less than half of the files."),
    Case("SnaploomSkippingUnused",
         {f"snaploom_index_usable{{{INDEX}}}": "1x90",
          f"snaploom_index_covered_ratio{{{INDEX}}}": "1x10 0.4x80"}, 75,
         {"namespace": "shop", "name": "quick"},
         "Queries skip few files with SkippingIndex shop/quick, "
         "which is not built or covers less than half of the files."),
    Case("SnaploomEventsNotWritten", {'snaploom_events_total{outcome="failed"}': "0+1x40"}, 30, {},
         "Events about resources cannot be posted."),
    Case("SnaploomAdmissionSlow",
         {'snaploom_admission_review_seconds_bucket{le="1"}': "0+1x40",
          'snaploom_admission_review_seconds_bucket{le="2.5"}': "0+9x40",
          'snaploom_admission_review_seconds_bucket{le="+Inf"}': "0+9x40"}, 30, {},
         "One webhook review in a hundred takes more than a second."),
    Case("SnaploomCertificateEnds",
         {"snaploom_webhook_certificate_expiry_timestamp_seconds": "259200x90"}, 62, {},
         "The webhook's certificate expires within three days."),
]  # fmt: skip

QUIET = [
    Case("SnaploomOperatorAway", {"snaploom_queue_depth": "0x20"}, 11),
    # A new operator is at work some seconds after the old one's end.
    Case("SnaploomNobodyLeads", {'snaploom_leader{pod="old"}': "0x10",
                                 'snaploom_leader{pod="new"}': "0x2 1x8"}, 7),
    Case("SnaploomQueueStuck", {"snaploom_queue_age_seconds": "0 400x5 0x10"}, 11),
    Case("SnaploomWatchSilent", {'snaploom_watch_age_seconds{kind="DataSource"}': "600x60"}, 27),
    Case("SnaploomReconcileFails",
         {'snaploom_reconcile_failures_total{reason="ObjectChanged"}': "0+1x40"}, 30),
    Case("SnaploomResourcesStalled",
         {'snaploom_resources{kind="DataSource",reason="Valid"}': "2x40"}, 31),
    Case("SnaploomInternalError",
         {'snaploom_resources{kind="DataSource",reason="Invalid"}': "1x10"}, 6),
    Case("SnaploomRunsFail",
         {'snaploom_run_failures_total{kind="OutputDataset",reason="OutOfMemory"}': "0x5 2x20"},
         15),
    # A retry that ends well within ten minutes is nobody's business.
    Case("SnaploomRunFailed",
         {f'snaploom_last_run_failed{{{PLACE},reason="SourceNotReadable"}}': "1x8 stale"}, 11),
    # An attempt in flight takes the series away.
    Case("SnaploomNoAttemptFollows",
         {f'snaploom_no_attempt_follows{{{PLACE},reason="SourceNotReadable"}}': "1x3 stale"}, 8),
    Case("SnaploomSnapshotStale", {f"snaploom_fresh{{{PLACE}}}": "1x30"}, 22),
    Case("SnaploomRunStuck",
         {f'snaploom_run_phase_age_seconds{{{PLACE},phase="Running"}}': "0+60x60"}, 50),
    Case("SnaploomSkippingUnused",
         {f"snaploom_index_usable{{{INDEX}}}": "1x90",
          f"snaploom_index_covered_ratio{{{INDEX}}}": "0.9x90"}, 75),
    Case("SnaploomEventsNotWritten", {'snaploom_events_total{outcome="new"}': "0+1x40"}, 30),
    Case("SnaploomAdmissionSlow",
         {'snaploom_admission_review_seconds_bucket{le="1"}': "0+9x40",
          'snaploom_admission_review_seconds_bucket{le="+Inf"}': "0+9x40"}, 30),
    Case("SnaploomCertificateEnds",
         {"snaploom_webhook_certificate_expiry_timestamp_seconds": "7776000x90"}, 62),
    # With cert-manager the operator knows nothing of the certificate.
    Case("SnaploomCertificateEnds",
         {'snaploom_webhook_certificate_expiry_timestamp_seconds{pod="operator"}':
              " ".join(["NaN"] * 90),
          'snaploom_webhook_certificate_expiry_timestamp_seconds{pod="webhook"}': "7776000x90"},
         62),
]  # fmt: skip


@cache
def rules() -> tuple[Raw, ...]:
    rendered = Rendered.of(
        {"crds": {"enabled": False}, "metrics": {"prometheusRule": {"enabled": True}}}
    )
    (rule,) = rendered.of_kind("PrometheusRule")
    (group,) = rule["spec"]["groups"]
    return tuple(group["rules"])


@pytest.fixture(scope="module")
def rule_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("rules") / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "snaploom", "rules": [*rules()]}]}))
    return file


def expected(case: Case) -> list[Raw]:
    if case.labels is None:
        return []
    (rule,) = (rule for rule in rules() if rule["alert"] == case.alert)
    described = rule["annotations"]["description"]
    for label, value in case.labels.items():
        described = described.replace(f"{{{{ $labels.{label} }}}}", value)
    annotations = {"summary": case.summary, "description": described}
    if "$value" in described:
        annotations["description"] = "The oldest key has waited for 17m 40s."
    labels = {**case.labels, "severity": rule["labels"]["severity"]}
    return [{"exp_labels": labels, "exp_annotations": annotations}]


def checked(rule_file: Path, case: Case) -> tuple[int, str]:
    series = [{"series": name, "values": values} for name, values in case.series.items()]
    asked = {"alertname": case.alert, "eval_time": f"{case.minutes}m", "exp_alerts": expected(case)}
    document = {
        "rule_files": [str(rule_file)],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": series, "alert_rule_test": [asked]}],
    }
    file = rule_file.with_name("test.yaml")
    file.write_text(yaml.safe_dump(document))
    return promtool("test", "rules", file)


def test_rules_are_what_prometheus_takes(rule_file: Path) -> None:
    code, output = promtool("check", "rules", rule_file)
    assert code == 0, output
    assert f"{len(rules())} rules found" in output


@pytest.mark.parametrize("case", FIRES, ids=lambda case: case.alert)
def test_alert_fires_with_its_cause(rule_file: Path, case: Case) -> None:
    code, output = checked(rule_file, case)
    assert code == 0, output


@pytest.mark.parametrize("case", QUIET, ids=lambda case: case.alert)
def test_alert_is_quiet_while_all_is_well(rule_file: Path, case: Case) -> None:
    code, output = checked(rule_file, case)
    assert code == 0, output


def test_every_alert_is_tried_both_ways() -> None:
    alerts = {rule["alert"] for rule in rules()}
    assert {case.alert for case in FIRES} == {case.alert for case in QUIET} == alerts
