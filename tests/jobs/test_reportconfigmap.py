"""Reports in ConfigMaps: over a server in memory and over a real API server, and faults."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client import ApiClient, Configuration, CoreV1Api
from kubernetes.config import ConfigException
from support.cluster.cluster import Cluster
from support.declared.declarations import model
from support.operator.clusters import at_once
from support.operator.fakecluster import FakeCluster
from support.weaving.loom import Loom

from snaploom.models.report import Report, RunPhase, SnapshotReason, Unpublished
from snaploom.run.clusterobjects import (
    ROUNDS,
    ConfigMapPlace,
    ConfigMapReport,
    NoCluster,
    connect,
    labels_of,
)
from snaploom.run.joblog import Owner, RunIdentity
from snaploom.run.reports.writer import LARGEST_REPORT, ReportNotOurs, ReportNotWritten
from snaploom_operator.cluster.port import CONFIG_MAPS, OURS
from snaploom_operator.errors import ObjectChanged, ObjectExists, ObjectMissing
from snaploom_operator.objects import Metadata

Raw = dict[str, Any]
Answer = tuple[int, Raw]
KIND = {"apiVersion": "v1", "kind": "ConfigMap"}
LOST = (0, {})
"""No answer: the connection ends."""


def failure(status: HTTPStatus, message: str = "") -> Answer:
    return status, {"kind": "Status", "code": int(status), "message": message or status.phrase}


class ConfigMapApi:
    """ConfigMaps of a cluster in memory, as an API server answers requests for them."""

    def __init__(self) -> None:
        self.cluster = FakeCluster(("ns",))
        self.requests: list[str] = []
        """Methods, in the order of arrival."""
        self.before: Callable[[str], Answer | None] = lambda method: None
        """Asked before each request: an answer instead, or None to go on."""
        self._lock = threading.Lock()

    def answer(self, method: str, namespace: str, name: str, body: Raw) -> Answer:
        with self._lock:
            self.requests.append(method)
            return self.before(method) or self._answer(method, namespace, name, KIND | body)

    def _answer(self, method: str, namespace: str, name: str, body: Raw) -> Answer:
        asked = {
            "GET": partial(self.cluster.get, CONFIG_MAPS, namespace, name),
            "POST": partial(self.cluster.create, CONFIG_MAPS, namespace, body),
            "PUT": partial(self.cluster.replace, CONFIG_MAPS, namespace, body),
        }
        try:
            return HTTPStatus.OK, dict(at_once(asked[method]()))
        except ObjectMissing:
            return failure(HTTPStatus.NOT_FOUND)
        except (ObjectChanged, ObjectExists):
            return failure(HTTPStatus.CONFLICT)


@contextmanager
def serving(config_maps: ConfigMapApi) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def do_PUT(self) -> None:
            self._serve()

        def log_message(self, *_: object) -> None:
            return None

        def _serve(self) -> None:
            # /api/v1/namespaces/NAMESPACE/configmaps[/NAME]
            _, _, _, _, namespace, _, *name = self.path.split("?")[0].split("/")
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")
            status, answer = config_maps.answer(self.command, namespace, "".join(name), body)
            if not status:
                self.connection.close()
                return
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


RUN = "ods-wide-0a1b2c3d"
NAME = f"{RUN}-report"


@dataclass(frozen=True)
class ConfigMapServer:
    """A server that stores ConfigMaps, fake or real."""

    namespace: str
    connect: Callable[[], CoreV1Api]
    uid: str = "5c1e7f9a-0000-4000-8000-000000000000"
    """Of the resource that owns the Reports; a cluster deletes what nobody owns."""

    def sink(self) -> ConfigMapReport:
        owner = Owner("OutputDataset", "wide", self.namespace)
        identity = RunIdentity(RUN, self.uid, 2)
        return ConfigMapReport(ConfigMapPlace(self.namespace, NAME), owner, identity, self.connect)

    def stored(self) -> Raw:
        api = self.connect()
        found = api.read_namespaced_config_map(NAME, self.namespace)
        raw: Raw = api.api_client.sanitize_for_serialization(found)
        return raw

    def report(self) -> Report:
        return Report.model_validate_json(self.stored()["data"]["report.json"])

    def write_other(self, **metadata: Any) -> None:
        """Somebody else's ConfigMap of the same name."""
        body = {"metadata": {"name": NAME, **metadata}, "data": {"report.json": "theirs"}}
        self.connect().create_namespaced_config_map(self.namespace, body)


def a_report(message: str = "", phase: RunPhase = RunPhase.RUNNING) -> Report:
    report = Report(
        output="wide", run_id="", phase=phase, started_at="2024-01-01T00:00:00Z", message=message
    )
    return report.model_copy(update={"run_id": RUN})


@pytest.fixture
def fake() -> ConfigMapApi:
    return ConfigMapApi()


@pytest.fixture
def fake_server(fake: ConfigMapApi) -> Iterator[ConfigMapServer]:
    with serving(fake) as url:
        configuration = Configuration(host=url, retries=False)
        owner = at_once(fake.cluster.create(OURS["OutputDataset"], "ns", model()[-1]))
        uid = Metadata.of(owner).uid
        yield ConfigMapServer("ns", lambda: CoreV1Api(ApiClient(configuration)), uid)


@pytest.fixture
def real_server(
    control_plane: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> ConfigMapServer:
    """As a ServiceAccount with the three verbs and no other right."""
    kubectl = control_plane.kubectl
    kubectl("create", "serviceaccount", "driver", "--namespace", namespace)
    kubectl(
        "create", "role", "driver", "--verb=get,create,update", "--resource=configmaps",
        "--namespace", namespace,
    )  # fmt: skip
    kubectl(
        "create", "rolebinding", "driver", "--role=driver",
        f"--serviceaccount={namespace}:driver", "--namespace", namespace,
    )  # fmt: skip
    monkeypatch.setenv("KUBECONFIG", str(control_plane.kubeconfig_of(namespace, "driver")))
    loom = Loom(tmp_path)
    loom.join("customer")
    output = loom.bundle().output.dump()
    kubectl("create", "--namespace", namespace, "-f", "-", stdin=json.dumps(output))
    uid = kubectl.get("outputdataset", "wide", namespace)["metadata"]["uid"]
    return ConfigMapServer(namespace, connect, uid)


@pytest.fixture(params=["fake", "real"])
def server(request: pytest.FixtureRequest) -> ConfigMapServer:
    found: ConfigMapServer = request.getfixturevalue(f"{request.param}_server")
    return found


def test_first_report_creates_a_config_map_that_the_resource_owns(server: ConfigMapServer) -> None:
    server.sink().write(a_report())
    metadata = server.stored()["metadata"]
    assert metadata["labels"] == {
        "snaploom.io/kind": "OutputDataset",
        "snaploom.io/name": "wide",
        "snaploom.io/role": "report",
        "snaploom.io/owner-uid": server.uid,
        "snaploom.io/run": RUN,
    }
    (owner,) = metadata["ownerReferences"]
    assert owner == {
        "apiVersion": "snaploom.io/v1alpha1",
        "kind": "OutputDataset",
        "name": "wide",
        "uid": server.uid,
        "controller": False,
        "blockOwnerDeletion": False,
    }
    assert server.report() == a_report()


def test_further_reports_replace_it(server: ConfigMapServer) -> None:
    sink = server.sink()
    for message in ("one", "two", "three"):
        sink.write(a_report(message))
        assert server.report().message == message


def test_driver_that_starts_again_goes_on_with_its_config_map(server: ConfigMapServer) -> None:
    server.sink().write(a_report("first"))
    server.sink().write(a_report("second"))
    assert server.report().message == "second"


def test_what_others_added_stays_and_does_not_disturb(server: ConfigMapServer) -> None:
    sink = server.sink()
    sink.write(a_report("first"))
    api = server.connect()
    theirs = api.read_namespaced_config_map(NAME, server.namespace)
    theirs.metadata.annotations = {"their.io/note": "x"}
    api.replace_namespaced_config_map(NAME, server.namespace, theirs)
    sink.write(a_report("second"))
    assert server.stored()["metadata"]["annotations"] == {"their.io/note": "x"}
    assert server.report().message == "second"


@pytest.mark.parametrize("given", ["nothing", "uid", "run"])
def test_config_map_of_somebody_else_is_left_as_it_is(server: ConfigMapServer, given: str) -> None:
    uid = server.uid if given == "uid" else "another"
    run = RUN if given == "run" else "another"
    labels = {"snaploom.io/owner-uid": uid, "snaploom.io/run": run}
    server.write_other(labels={} if given == "nothing" else labels)
    with pytest.raises(ReportNotOurs, match="belongs to another run"):
        server.sink().write(a_report())
    assert server.stored()["data"] == {"report.json": "theirs"}


def test_report_that_is_too_large_is_cut_to_what_a_config_map_holds(server):
    left = Unpublished(
        time="2024-01-01T00:00:00Z",
        partition="day=1",
        reason=SnapshotReason.FAILED,
        message="ü" * 1000,
    )
    server.sink().write(a_report().model_copy(update={"skipped": (left,) * 2000}))
    assert len(server.stored()["data"]["report.json"].encode()) <= LARGEST_REPORT
    assert server.report().truncated


def test_rights_that_are_missing_are_an_error(real_server: ConfigMapServer) -> None:
    elsewhere = ConfigMapServer("default", real_server.connect, real_server.uid)
    with pytest.raises(ReportNotWritten, match=r"403 .*cannot get resource"):
        elsewhere.sink().write(a_report())


@pytest.mark.parametrize("answer", [failure(HTTPStatus.INTERNAL_SERVER_ERROR), LOST])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
def test_fault_is_an_error_and_the_next_attempt_goes_on(fake, fake_server, method, answer):
    sink = fake_server.sink()
    if method == "PUT":
        sink.write(a_report("first"))
    fake.before = lambda asked: answer if asked == method else None
    with pytest.raises(ReportNotWritten) as caught:
        sink.write(a_report("second"))
    assert caught.value.retryable
    fake.before = lambda asked: None
    sink.write(a_report("second"))
    assert fake_server.report().message == "second"


def test_answer_that_is_lost_after_the_creation_is_no_harm(fake, fake_server):
    def create_and_lose(method: str) -> tuple[int, Raw] | None:
        if method != "POST":
            return None
        theirs = KIND | {"metadata": {"name": NAME, "labels": labels}, "data": {}}
        at_once(fake.cluster.create(CONFIG_MAPS, "ns", theirs))
        return LOST

    identity = RunIdentity(RUN, fake_server.uid, 0)
    labels = labels_of(Owner("OutputDataset", "wide", "ns"), identity)
    sink = fake_server.sink()
    fake.before = create_and_lose
    with pytest.raises(ReportNotWritten):
        sink.write(a_report())
    sink.write(a_report())
    assert fake_server.report() == a_report()


def test_config_map_that_is_deleted_meanwhile_is_created_again(fake, fake_server):
    sink = fake_server.sink()
    sink.write(a_report("first"))
    uid = fake_server.stored()["metadata"]["uid"]
    at_once(fake.cluster.delete(CONFIG_MAPS, "ns", NAME, uid=uid))
    sink.write(a_report("second"))
    assert fake_server.report().message == "second"


def test_a_stream_of_conflicts_ends(fake: ConfigMapApi, fake_server: ConfigMapServer) -> None:
    sink = fake_server.sink()
    sink.write(a_report("first"))
    fake.requests.clear()
    fake.before = lambda asked: failure(HTTPStatus.CONFLICT) if asked == "PUT" else None
    with pytest.raises(ReportNotWritten, match="somebody else changed it"):
        sink.write(a_report("second"))
    assert fake.requests.count("PUT") == ROUNDS


def test_a_report_of_a_run_that_goes_on_costs_one_request(fake, fake_server):
    sink = fake_server.sink()
    sink.write(a_report("first"))
    fake.requests.clear()
    sink.write(a_report("second"))
    assert fake.requests == ["PUT"]


def test_pod_without_a_cluster_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigException):
        connect()
    with pytest.raises(NoCluster, match="Service host/port"):
        ConfigMapServer("ns", connect).sink().write(a_report())
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    with pytest.raises(NoCluster):
        ConfigMapServer("ns", connect).sink().write(a_report())


@pytest.mark.parametrize(
    ("name", "label"),
    [("wide", "wide"), ("x" * 62 + "-yz", "x" * 62), ("a." * 40 + "b", ("a." * 31) + "a")],
)
def test_names_are_cut_to_what_a_label_takes(name: str, label: str) -> None:
    labels = labels_of(Owner("SkippingIndex", name, "ns"), RunIdentity(RUN, "uid", 0))
    assert labels["snaploom.io/name"] == label
