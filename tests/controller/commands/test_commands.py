"""The commands that talk to a cluster, on a real API server, as a person types them."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.cluster.cluster import Cluster
from support.cluster.clusterkubectl import Kubectl, KubectlFailed
from support.declared.declarations import Raw, document, files, output, relationship
from support.declared.declarations import key as join_key
from support.declared.shop import CommandResult, snaploom
from support.documentation.examples import BIN

from snaploom.confidential import visible_lines
from snaploom.models.common import EpochNanos, parse_instant
from snaploom_operator.cluster.client import LogLine
from snaploom_operator.commands.logs import Line, driver_line, merged, operator_line
from snaploom_operator.errors import ObjectMissing
from snaploom_operator.objects import Ref

RELATIONSHIP = relationship(
    "customer-id", (["customer"], [join_key("id")]), (["address"], [join_key("customer")])
)
LOCAL_RUN = "ods-wide-12345678"
MODEL = (files("customer"), files("address"), RELATIONSHIP, output())


@pytest.fixture
def place(control_plane: Cluster, namespace: str, kubectl: Kubectl) -> tuple[str, ...]:
    kubectl.apply(*MODEL, namespace=namespace)
    return ("--kubeconfig", str(control_plane.kubeconfig), "-n", namespace)


def run_of(kubectl: Kubectl, namespace: str) -> Raw:
    stored = kubectl.get("outputdataset", "wide", namespace)
    annotations = stored["metadata"].get("annotations", {})
    return {"token": annotations.get("snaploom.io/run"), **stored["spec"].get("run", {})}


def test_status_shows_what_is_declared(place: tuple[str, ...]) -> None:
    result = snaploom("status", *place)
    assert (result.code, result.err) == (0, "")
    assert "OutputDataset/wide  not reconciled yet" in result.out
    assert "DataSource/address  as address" in result.out


def test_status_as_json_holds_the_resources(place: tuple[str, ...]) -> None:
    document_ = snaploom("status", "ods/wide", "-o", "json", *place).document
    assert [resource["metadata"]["name"] for resource in document_["resources"]] == ["wide"]


def test_status_names_a_resource_that_it_cannot_read(place, namespace, kubectl):
    # The schema of a CRD describes recursive types one level deep.
    deep = {"array": {"elementType": {"array": {"elementType": {"nonsense": {}}}}}}
    transformer = {"cast": {"dataType": deep}, "selectors": [{"coordinateIncludeRegex": "."}]}
    wrong = document("FieldTransformer", "wrong", {"transformers": [transformer]})
    kubectl.apply(wrong, namespace=namespace)
    result = snaploom("status", *place)
    assert result.code == 0
    assert "FieldTransformer/wrong  cannot be shown" in result.out


def test_an_empty_namespace_is_named(control_plane: Cluster, namespace: str) -> None:
    result = snaploom("status", "--kubeconfig", control_plane.kubeconfig, "-n", namespace)
    assert (
        result.out == f"No Snaploom resources in the namespace {namespace}; use `-n` for another.\n"
    )


def test_trigger_asks_for_another_run_each_time(place, namespace, kubectl):
    assert snaploom("trigger", "wide", *place).code == 0
    first = run_of(kubectl, namespace)["token"]
    snaploom("trigger", "ods/wide", *place)
    assert first not in (None, run_of(kubectl, namespace)["token"])


def test_suspend_and_resume_change_the_resource_and_nothing_else(place, namespace, kubectl):
    before = kubectl.get("outputdataset", "wide", namespace)["spec"]
    assert snaploom("suspend", "wide", *place).code == 0
    assert run_of(kubectl, namespace)["suspend"] is True
    assert "starts when the resource is resumed" in snaploom("trigger", "wide", *place).out
    assert snaploom("resume", "wide", *place).code == 0
    after = kubectl.get("outputdataset", "wide", namespace)["spec"]
    assert after == before


def apply_suspension(kubectl: Kubectl, namespace: str, *, value: bool) -> None:
    applied = {
        "apiVersion": "snaploom.io/v1alpha1", "kind": "OutputDataset",
        "metadata": {"name": "wide", "namespace": namespace}, "spec": {"run": {"suspend": value}},
    }  # fmt: skip
    how = ("--server-side", "--field-manager=gitops", "-f", "-")
    kubectl("apply", *how, stdin=json.dumps(applied))


def test_what_the_command_line_writes_is_its_own_and_not_the_operators(place, namespace, kubectl):
    snaploom("suspend", "wide", *place)
    snaploom("trigger", "wide", *place)
    managed = kubectl("get", "outputdataset", "wide", "-n", namespace, "--show-managed-fields",
                      "-o", "jsonpath={.metadata.managedFields[*].manager}")  # fmt: skip
    assert "snaploom-cli" in managed.split()
    assert "snaploom-operator" not in managed.split()
    with pytest.raises(KubectlFailed, match=r"conflict with \"snaploom-cli\".*spec.run.suspend"):
        apply_suspension(kubectl, namespace, value=False)


def test_gitops_can_own_the_suspension_after_resume(place, namespace, kubectl):
    snaploom("suspend", "wide", *place)
    snaploom("resume", "wide", *place)
    apply_suspension(kubectl, namespace, value=True)
    result = snaploom("resume", "wide", *place).out
    assert "gitops wrote run.suspend before, and may set it back" in result
    apply_suspension(kubectl, namespace, value=False)


def test_a_command_without_effect_reports_the_state(place: tuple[str, ...], namespace: str) -> None:
    assert snaploom("resume", "wide", *place).out.endswith("was not suspended\n")
    assert (
        f": suspended; `snaploom resume wide -n {namespace}`"
        in snaploom("suspend", "wide", *place).out
    )
    assert "already suspended" in snaploom("suspend", "wide", *place).out


def test_trigger_reports_that_a_pause_delays_the_run(place, namespace, kubectl):
    kubectl("annotate", "outputdataset", "wide", "snaploom.io/paused=true", "-n", namespace)
    snaploom("suspend", "wide", *place)
    for command in ("trigger", "resume"):
        result = snaploom(command, "wide", *place).out
        assert "the annotation snaploom.io/paused pauses every run" in result


@pytest.mark.parametrize("command", ["status", "trigger", "suspend", "resume", "logs"])
def test_a_resource_that_is_not_there_is_one_error(place, namespace, command):
    result = snaploom(command, "ods/narrow", *place)
    assert result.code == 2
    assert result.err.count("error SL191") == 1
    assert namespace in result.err


@pytest.mark.parametrize("command", ["status", "trigger", "suspend", "resume", "logs"])
def test_a_misspelt_name_gets_a_suggestion(place: tuple[str, ...], command: str) -> None:
    result = snaploom(command, "ods/wyde", *place)
    assert "did you mean `OutputDataset/wide`?" in result.err


def post_event(kubectl: Kubectl, namespace: str, reason: str, note: str) -> None:
    """What the operator posts about `wide`."""
    uid = kubectl.get("outputdataset", "wide", namespace)["metadata"]["uid"]
    event = {
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"name": f"wide.{reason.lower()}", "namespace": namespace},
        "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "snaploom.io/operator",
        "reportingInstance": "one", "action": "Reconcile", "reason": reason,
        "type": "Normal", "note": note,
        "regarding": {"apiVersion": "snaploom.io/v1alpha1", "kind": "OutputDataset",
                      "namespace": namespace, "name": "wide", "uid": uid},
    }  # fmt: skip
    kubectl("create", "-f", "-", stdin=json.dumps(event))


def test_logs_of_a_deleted_output_are_its_events(place, namespace, kubectl):
    note = "what was published is deleted: 2 files that Snaploom did not write stay: mine.csv"
    post_event(kubectl, namespace, "DataDeleted", note)
    kubectl("delete", "outputdataset", "wide", "-n", namespace)
    result = snaploom("logs", "wide", *place)
    assert result.code == 0
    assert result.out == f"2026-01-01T00:00:00Z event    Normal DataDeleted: {note}\n"
    assert "was deleted" in result.err


def record_local_run(kubectl: Kubectl, namespace: str, state: str, **data: str) -> None:
    """What the operator records about a run of `wide` that is a process."""
    uid = kubectl.get("outputdataset", "wide", namespace)["metadata"]["uid"]
    labels = {"snaploom.io/role": "application", "snaploom.io/run": LOCAL_RUN,
              "snaploom.io/owner-uid": uid}  # fmt: skip
    recorded = {"state": state, "host": "desk", "process": "4711 99", **data}
    kubectl.apply({"apiVersion": "v1", "kind": "ConfigMap", "data": recorded,
                   "metadata": {"name": LOCAL_RUN, "labels": labels}},
                  namespace=namespace)  # fmt: skip


def test_logs_of_a_local_run_name_its_host_and_its_last_lines(place, namespace, kubectl):
    record_local_run(kubectl, namespace, "FAILED", message="no disk\nexit 1")
    result = snaploom("logs", "wide", "--run", LOCAL_RUN, *place).out.splitlines()
    assert result[0] == f"local run {LOCAL_RUN}, process 4711 of desk: FAILED"
    assert result[2:] == ["end of its stderr:", "  no disk", "  exit 1"]


def test_logs_follow_a_local_run_until_it_ends(place, namespace, kubectl):
    record_local_run(kubectl, namespace, "RUNNING")
    command = [BIN / "snaploom", "logs", "wide", "--run", LOCAL_RUN, "--follow", *place]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout.readline().endswith("of desk: RUNNING\n")
        record_local_run(kubectl, namespace, "FAILED", message="no disk")
        rest = following.stdout.read().splitlines()
    assert following.returncode == 0
    assert rest[1:] == [
        f"local run {LOCAL_RUN}, process 4711 of desk: FAILED", "end of its stderr:", "  no disk"
    ]  # fmt: skip


def test_logs_of_a_run_without_logs_are_its_events(place, namespace, kubectl):
    post_event(kubectl, namespace, "RunStarted", "run ods-wide-00000000: it has never run")
    post_event(kubectl, namespace, "DeadlineExceeded", "run ods-wide-12345678: it took longer")
    result = snaploom("logs", "wide", "--run", "ods-wide-12345678", *place)
    assert result.code == 0
    assert result.out == (
        "2026-01-01T00:00:00Z event    Normal DeadlineExceeded: "
        "run ods-wide-12345678: it took longer\n"
    )
    assert "no log of the run ods-wide-12345678 is left" in result.err


def test_logs_of_an_output_that_never_ran_are_an_error(place: tuple[str, ...]) -> None:
    result = snaploom("logs", "wide", *place)
    assert (result.code, result.out) == (2, "")
    assert "it has not run yet" in result.err


def test_a_kubeconfig_that_leads_nowhere_is_one_error(tmp_path: Path) -> None:
    result: CommandResult = snaploom("status", "--kubeconfig", tmp_path / "missing")
    assert result.code == 2
    assert "no Kubernetes cluster is configured" in result.err
    assert "on a laptop `snaploom snapshots`" in result.err


def test_a_context_that_is_not_in_the_kubeconfig_is_one_error(control_plane: Cluster) -> None:
    result = snaploom("status", "--kubeconfig", control_plane.kubeconfig, "--context", "other")
    assert result.code == 2
    assert "no context 'other'" in result.err


def test_the_name_of_the_kubectl_plugin_runs_the_same_program(place: tuple[str, ...]) -> None:
    from_plugin = json.loads(snaploom("status", "-o", "json", *place).out)
    assert len(from_plugin["resources"]) == len(MODEL)


AT = parse_instant("2026-01-01T00:00:01.234567891Z")
WIDE = Ref("OutputDataset", "team", "wide")


def logged(**fields: str) -> LogLine:
    return LogLine(AT, json.dumps({"time": "2026-01-01T00:00:01.234Z", "level": "info", **fields}))


def test_a_drivers_own_line_is_shown_as_people_read_it() -> None:
    line = driver_line(logged(message="published 7 rows", resource=str(WIDE), run="ods-1"))
    assert str(line) == "2026-01-01T00:00:01.234Z driver   INFO    published 7 rows"


@pytest.mark.parametrize("text", ["26/01/01 WARN TaskSetManager: Lost task", "{not json", "{}"])
def test_lines_of_spark_stay_unchanged(text: str) -> None:
    assert driver_line(LogLine(AT, text)).text == text


def test_the_operators_lines_about_others_are_left_out() -> None:
    ours = logged(message="a run ended", resource=str(WIDE), reason="RunFailed")
    found = operator_line(ours, WIDE)
    assert found.text == "INFO    a run ended reason=RunFailed"
    assert operator_line(logged(message="hello", resource=f"{WIDE}r"), WIDE) is None
    assert operator_line(logged(message=f"about {WIDE}"), WIDE) is None


def test_the_operators_form_for_people_is_understood() -> None:
    text = f"2026-01-01T00:00:01.234Z WARNING it is taken resource={WIDE} reason=NameTaken"
    found = operator_line(LogLine(AT, text), WIDE)
    assert found.text == "WARNING it is taken reason=NameTaken"
    assert operator_line(LogLine(AT, text), Ref("OutputDataset", "team", "wid")) is None


def test_a_traceback_follows_its_message() -> None:
    line = driver_line(logged(message="it failed", exception="Traceback\n  here"))
    assert line.text == "INFO    it failed\nTraceback\n  here"


FORGED = "\n2026-01-01T00:00:02Z operator INFO    a run ended"


@given(text=st.text(st.one_of(st.characters(), st.sampled_from("\x1b\x9b\r\n\u202e\u2028"))))
@example(text=FORGED)
@example(text="\x1b[2K\rpublished 9 rows")
@example(text='{"message": ' + "[" * 100_000)
@example(text=json.dumps({"message": f"it failed{FORGED}", "exception": FORGED}))
def test_text_of_a_driver_moves_no_cursor_and_forges_no_line(text: str) -> None:
    first, *more = str(driver_line(LogLine(AT, text))).split("\n")
    assert first.startswith("2026-01-01T00:00:01.234Z driver   ")
    assert all(line.startswith("  ") for line in more)
    assert visible_lines("".join(more) + first) == "".join(more) + first


async def lines_at(source: str, *times: int) -> AsyncIterator[Line]:
    for time in times:
        yield Line(EpochNanos(time), source, "")
        await asyncio.sleep(0)


async def test_lines_come_in_the_order_of_time() -> None:
    logs = [lines_at("driver", 1, 4, 5), lines_at("operator", 2, 3, 6)]
    found = [line.time async for line in merged(logs, is_followed=False)]
    assert found == [1, 2, 3, 4, 5, 6]


async def test_lines_that_are_followed_come_before_the_end() -> None:
    more = asyncio.Event()

    async def goes_on() -> AsyncIterator[Line]:
        yield Line(EpochNanos(2), "driver", "")
        await more.wait()
        yield Line(EpochNanos(3), "driver", "")

    lines = merged([goes_on(), lines_at("operator", 1)], is_followed=True)
    assert [(await anext(lines)).time for _ in range(2)] == [1, 2]
    more.set()
    assert [line.time async for line in lines] == [3]


async def test_a_log_that_breaks_off_is_an_error_behind_its_lines() -> None:
    async def breaks() -> AsyncIterator[Line]:
        yield Line(EpochNanos(1), "driver", "")
        raise ObjectMissing("the pod is gone")

    lines = merged([breaks()], is_followed=False)
    assert (await anext(lines)).time == 1
    with pytest.raises(ObjectMissing):
        await anext(lines)
