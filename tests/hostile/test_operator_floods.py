"""What the operator writes for one tenant is bounded, whatever the tenant declares."""

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry
from support.declared.declarations import Raw, files, model, output, spoilt
from support.operator.fakecluster import FakeCluster
from support.operator.operatorharness import NAMESPACE, FakeHarness, is_ready, started

from snaploom.models.allowances import Allowances
from snaploom.models.common import now
from snaploom.policy.pods import BUILT_IN_LISTS
from snaploom_operator.admission.webhook import AdmissionMetrics
from snaploom_operator.apply.events import LONGEST_NOTE, UNKNOWN_REASON, EventRecorder
from snaploom_operator.cluster.port import CONFIG_MAPS, EVENTS, SPARK_APPLICATIONS
from snaploom_operator.commands.options import OutputForm
from snaploom_operator.commands.settings import HIDDEN, settings
from snaploom_operator.conditions import MOST_BYTES
from snaploom_operator.decision import EventType, Note
from snaploom_operator.objects import Ref
from snaploom_operator.queues import WorkQueue
from snaploom_operator.serve.metrics import OTHER_REASON, Metrics

WIDE = "OutputDataset/wide"
LONGEST_LINE = 64 * 1024
"""Characters of a log line."""
MOST_PASSES = 60
"""Passes in which one resource settles, whatever its status has."""


def many_conf() -> Raw:
    conf = {f"spark.x{number}.{'k' * 400}": "v" * 2_000 for number in range(250)}
    return spoilt(output(), "spec.run", {"spark": {"sparkConf": conf}})


def many_unknown_fields() -> Raw:
    return spoilt(output(), "spec.dataModel", {f"no{n}-{'x' * 200}": n for n in range(3_000)})


def many_missing() -> Raw:
    others = [{"dataSource": f"missing-{number}"} for number in range(400)]
    return spoilt(output(), "spec.dataModel.otherDataSources", others)


def long_name_of_a_field() -> Raw:
    return spoilt(output(), "spec.dataModel.rootDataSource.fieldName", "ä\u202e😀" * 50_000)


def control_characters() -> Raw:
    return spoilt(output(), "spec.outputFolder.folderUri", "\x00\x1b[2J\r\n" * 1_000)


FLOODS = [many_conf, many_unknown_fields, many_missing, long_name_of_a_field, control_characters]


def size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass"))


async def settled(*declarations: Raw) -> tuple[FakeHarness, int]:
    harness = await started(*declarations)
    return harness, await harness.settle()


@pytest.mark.parametrize("flood", FLOODS)
async def test_a_flood_of_findings_ends_in_a_small_status(flood, caplog):
    caplog.set_level(logging.INFO)
    harness, passes = await settled(*model()[:-1], flood())
    stored = await harness.get(WIDE)
    assert size(stored["status"]) <= MOST_BYTES
    assert passes <= MOST_PASSES
    assert len(harness.notes.reasons(WIDE)) <= 2
    assert max(len(record.getMessage()) for record in caplog.records) < LONGEST_LINE


@pytest.mark.parametrize("flood", FLOODS)
async def test_a_flood_of_findings_is_written_once(flood: Callable[[], Raw]) -> None:
    harness, _ = await settled(*model()[:-1], flood())
    before = (await harness.get(WIDE))["metadata"]["resourceVersion"]
    await harness.restart()
    assert (await harness.get(WIDE))["metadata"]["resourceVersion"] == before


async def test_the_note_of_a_flood_fits_into_an_event() -> None:
    harness, _ = await settled(*model()[:-1], many_conf())
    assert all(len(note.message) < MOST_BYTES for _, note in harness.notes.found)
    assert LONGEST_NOTE == 1_024  # what the recorder cuts them to


@pytest.mark.parametrize("key", ["snaploom.io/run", "snaploom.io/paused", "anything/else"])
async def test_a_huge_annotation_is_copied_nowhere(key: str) -> None:
    huge = "x" * 250_000
    harness = await started()
    changed = [*model()]
    changed[-1] = spoilt(changed[-1], "metadata.annotations", {key: huge})
    await harness.apply(*changed)
    await harness.settle()
    stored = await harness.get(WIDE)
    assert size(stored["status"]) <= MOST_BYTES
    for child in (*await harness.all(SPARK_APPLICATIONS), *await harness.all(CONFIG_MAPS)):
        assert "x" * 1_000 not in json.dumps(child)


async def test_changes_without_pause_write_little_and_end_well() -> None:
    harness, _ = await settled(*model())
    ended = await harness.wait_for(WIDE, is_ready)
    for number in range(200):
        await harness.annotate(WIDE, noise=str(number))
        await harness.settle()
    stored = await harness.get(WIDE)
    assert stored["status"] == ended["status"]
    assert len(await harness.all(SPARK_APPLICATIONS)) == 1


async def test_a_source_of_two_thousand_columns_keeps_its_status_small() -> None:
    columns = [{"name": f"c{n}", "dataType": {"integer": {}}} for n in range(2_000)]
    wide = spoilt(files("customer"), "spec.hdfsLike.schemaFields", columns)
    harness, passes = await settled(wide, *model()[1:])
    for raw in model():
        stored = await harness.get(f"{raw['kind']}/{raw['metadata']['name']}")
        assert size(stored.get("status", {})) <= MOST_BYTES
    assert passes <= MOST_PASSES


async def test_a_resource_that_always_changes_lets_others_have_their_turn() -> None:
    seconds = [0.0]
    queue: WorkQueue[Ref] = WorkQueue(lambda: seconds[0], chance=lambda: 0.0)
    loud, quiet = Ref("OutputDataset", "a", "loud"), Ref("OutputDataset", "b", "quiet")
    queue.add(loud)
    queue.add(quiet)
    taken = []
    for _ in range(3):
        seconds[0] += 1
        taken.append(key := await queue.take())
        queue.add(loud)  # it changed again while it was worked on
        queue.done(key)
    assert taken[:2] == [loud, quiet]


async def test_words_of_a_forged_report_make_no_series_of_metrics() -> None:
    metrics = Metrics(CollectorRegistry())
    for number in range(50):
        metrics.run_ended("OutputDataset", "Failed", f"forged-{number}", 1.0)
    metrics.run_ended("OutputDataset", "Failed", "AccessDenied", 1.0)
    samples = [s for f in metrics.registry.collect() for s in f.samples if "reason" in s.labels]
    assert {s.labels["reason"] for s in samples} == {OTHER_REASON, "AccessDenied"}


@pytest.mark.parametrize("word", ["a b", "x" * 200, "", "a\nb", "<script>"])
async def test_words_of_a_forged_report_are_no_reason_of_an_event(word: str) -> None:
    fake = FakeCluster()
    recorder = EventRecorder(fake, "operator-1")
    note = Note(EventType.WARNING, word, "the run failed")
    await recorder.post(Ref("OutputDataset", NAMESPACE, "wide"), "uid", note, now())
    (event,) = (await fake.list(EVENTS, namespace=NAMESPACE)).items
    assert event["reason"] == UNKNOWN_REASON


PLACES = {"namespace", "name"}
"""Labels that identify the resource of a figure: alerts need them."""


def test_metrics_have_no_label_that_holds_data() -> None:
    metrics = Metrics(CollectorRegistry())
    admission = AdmissionMetrics(CollectorRegistry())
    labels = {
        label
        for registry in (metrics.registry, admission.registry)
        for collector in registry._collector_to_names
        for label in getattr(collector, "_labelnames", ())
    }
    ours = {"change", "code", "kind", "operation", "outcome", "phase", "reason", "resource", "verb"}
    assert labels <= ours | PLACES | {"version"}


MARKER = "canary-5f3a"
TEXT = f"""
allow: {{formats: [xml], sparkConf: [spark.plugins]}}
spark:
  podTemplate: {{env: [{{name: TOKEN, value: {MARKER}}}]}}
  sparkConf: {{spark.hadoop.fs.s3a.secret.key: {MARKER}, spark.task.cpus: "2"}}
"""


def shown(tmp_path: Path, capsys: pytest.CaptureFixture[str], *, entries: bool = False) -> str:
    (tmp_path / "settings.yaml").write_text(TEXT)
    assert settings(settings=tmp_path / "settings.yaml", entries=entries) == 0
    return capsys.readouterr().out


def test_every_list_is_known() -> None:
    assert [*BUILT_IN_LISTS] == [*Allowances().dump()]


def test_lists_are_shown_with_what_was_added(tmp_path, capsys):
    allowed = yaml.safe_load(shown(tmp_path, capsys))["allow"]
    assert allowed["formats"]["added"] == ["xml"]
    assert allowed["sparkConf"] == {
        "builtIn": len(BUILT_IN_LISTS["sparkConf"]),
        "added": ["spark.plugins"],
    }


def test_entries_of_a_list_are_named_on_demand(tmp_path, capsys):
    allowed = yaml.safe_load(shown(tmp_path, capsys, entries=True))["allow"]
    assert "spark.task.cpus" in allowed["sparkConf"]["builtIn"]


def test_no_secret_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(tmp_path, capsys)
    assert MARKER not in text
    spark = yaml.safe_load(text)["settings"]["spark"]
    assert spark["sparkConf"] == {"spark.hadoop.fs.s3a.secret.key": HIDDEN, "spark.task.cpus": "2"}


def test_settings_are_shown_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert settings(output=OutputForm.JSON) == 0
    assert json.loads(capsys.readouterr().out)["allow"]["images"]["added"] == ["*"]
