"""The webhook asked by a real API server, through kubectl as people use it."""

import asyncio
import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from support.cluster.cluster import Cluster
from support.declared.declarations import Raw, files, model, output, simple, spoilt
from support.documentation.commands import end, snaploom_command
from support.documentation.examples import REPOSITORY
from support.operator.webhookprocess import (
    WRONG,
    WebhookProcess,
    applied,
    asked_about,
    await_asked,
    await_text,
    configuration,
    run_kubectl,
)
from support.operator.webhooks import HOST, Ports, asking, install
from support.servers.certificates import Authority

from snaploom_operator.cluster.certificates import CertificateRotator
from snaploom_operator.cluster.client import open_cluster
from snaploom_operator.cluster.port import OURS
from snaploom_operator.errors import ClusterError
from snaploom_operator.settings import AdmissionSettings, OperatorSettings

FLIGHTS = REPOSITORY / "examples" / "flights"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "authority")


@pytest.fixture(scope="module")
def webhook(
    control_plane: Cluster, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebhookProcess]:
    """One webhook for all namespaces; each test has the API server ask it about its own."""
    folder = tmp_path_factory.mktemp("webhook") / "process"
    with WebhookProcess(
        folder, control_plane.kubeconfig, authority.issue(HOST)
    ).running() as webhook:
        yield webhook


@pytest.fixture
def place(
    control_plane: Cluster, webhook: WebhookProcess, authority: Authority, namespace: str
) -> Iterator[str]:
    with asked_about(control_plane, namespace, webhook.port, authority):
        await_asked(control_plane, namespace)
        yield namespace


def until_unwarned(cluster: Cluster, place: str, raw: Raw) -> str:
    """Apply until the webhook knows everything that is referred to."""
    changed = itertools.count()

    def apply() -> str:
        anew = spoilt(raw, "spec.dataModel.maxDepth", 2 + next(changed) % 2)
        code, text = applied(cluster.kubectl, place, anew)
        assert code == 0, text
        return text if "Warning" in text else "no warning"

    return await_text(apply, "no warning")


def test_a_wrong_object_is_refused_with_field_and_fix(control_plane: Cluster, place: str) -> None:
    code, text = applied(control_plane.kubectl, place, WRONG)
    assert code == 1
    assert "spec.outputFolder.folderUri: the folder must be absolute" in text
    assert "relative/" in text
    assert "fix: " in text
    assert "Traceback" not in text


def test_an_object_gets_its_name_from_the_api_server(control_plane: Cluster, place: str) -> None:
    create = ("create", "--namespace", place, "-f", "-")
    unnamed = spoilt(files("a"), "metadata", {"generateName": "orders-"})
    code, text = run_kubectl(control_plane.kubectl, *create, stdin=unnamed)
    assert (code, "orders-" in text) == (0, True), text
    wrong = spoilt(WRONG, "metadata", {"generateName": "wrong-"})
    code, text = run_kubectl(control_plane.kubectl, *create, stdin=wrong)
    assert (code, "the folder must be absolute" in text) == (1, True), text


def test_what_is_missing_is_a_warning_until_it_is_there(control_plane: Cluster, place: str) -> None:
    code, text = applied(control_plane.kubectl, place, output())
    assert code == 0
    assert text.count("Warning: OutputDataset/wide spec.dataModel") == 3
    for raw in model()[:-1]:
        assert applied(control_plane.kubectl, place, raw)[0] == 0
    until_unwarned(control_plane, place, output())


def test_a_dry_run_is_judged_and_leaves_nothing(control_plane: Cluster, place: str) -> None:
    assert applied(control_plane.kubectl, place, WRONG, "--dry-run=server")[0] == 1
    code, text = applied(control_plane.kubectl, place, output(), "--dry-run=server")
    assert (code, "Warning" in text) == (0, True)
    assert control_plane.kubectl.list("outputdatasets", place) == []


def test_a_deletion_of_what_is_used_passes_with_a_warning(control_plane, place):
    for raw in model():
        assert applied(control_plane.kubectl, place, raw)[0] == 0
    until_unwarned(control_plane, place, output())
    code, text = run_kubectl(
        control_plane.kubectl, "delete", "datasource", "customer", "--namespace", place
    )
    assert code == 0
    assert "Warning: DataSource/customer is used by DataRelationship/customer-id" in text


def test_an_object_that_is_being_deleted_loses_its_finalizer(
    control_plane: Cluster, place: str, authority: Authority, webhook: WebhookProcess
) -> None:
    """Even where it is wrong by itself, as what was there before the webhook may be."""
    kubectl = control_plane.kubectl
    run_kubectl(kubectl, "delete", "validatingwebhookconfiguration", place)
    held = spoilt(WRONG, "metadata.finalizers", ["snaploom.io/finalizer"])
    await_text(lambda: applied(kubectl, place, held)[1], "wrong created")
    with asked_about(control_plane, place, webhook.port, authority):
        await_text(
            lambda: applied(kubectl, place, spoilt(held, "spec.dataModel.maxDepth", 3))[1],
            "absolute",
        )
        kubectl("delete", "outputdataset", "wrong", "--namespace", place, "--wait=false")
        patch = '{"metadata":{"finalizers":null}}'
        kubectl("patch", "ods", "wrong", "-n", place, "--type=merge", "-p", patch)
        assert kubectl.list("outputdatasets", place) == []


def flights() -> list[Raw]:
    texts = [path.read_text("utf-8") for path in sorted(FLIGHTS.glob("*.yaml"))]
    loaded = itertools.chain.from_iterable(map(yaml.safe_load_all, texts))
    return [raw for raw in loaded if raw]


async def test_the_example_is_taken_in_any_order(control_plane: Cluster, place: str) -> None:
    wanted = sorted((raw["kind"], raw["metadata"]["name"]) for raw in flights())
    async with open_cluster(control_plane.kubeconfig) as cluster:
        for seed in range(20):
            shuffled = flights()
            random.Random(seed).shuffle(shuffled)
            for raw in shuffled:
                await cluster.create(OURS[raw["kind"]], place, raw)
            found = [
                (stored, resource)
                for resource in OURS.values()
                for stored in (await cluster.list(resource, namespace=place)).items
            ]
            names = [(r.kind, s["metadata"]["name"]) for s, r in found]  # type: ignore[index,call-overload]
            assert sorted(names) == wanted
            for stored, resource in found:
                metadata: Raw = dict(stored["metadata"])  # type: ignore[arg-type]
                await cluster.delete(resource, place, metadata["name"], uid=metadata["uid"])


async def test_a_new_certificate_under_load_costs_no_request(
    control_plane: Cluster, namespace: str, authority: Authority, tmp_path: Path
) -> None:
    """The API server trusts both authorities, as it does while a certificate is renewed."""
    other = Authority(tmp_path, "other")
    both = authority.certificate.read_bytes() + other.certificate.read_bytes()
    issued = authority.issue(HOST)
    with WebhookProcess(
        tmp_path / "process", control_plane.kubeconfig, issued
    ).running() as webhook:
        raw = configuration(namespace, namespace, webhook.port, both, "Fail")
        run_kubectl(control_plane.kubectl, "apply", "-f", "-", stdin=raw)
        await_asked(control_plane, namespace)
        try:
            failed, done = await load_while_renewed(control_plane, namespace, webhook, other)
        finally:
            run_kubectl(
                control_plane.kubectl, "delete", "validatingwebhookconfiguration", namespace
            )
        assert failed == []
        assert done > 100
        assert webhook.log_text().count("certificate in use") >= 4
        assert webhook.end() == 0


async def load_while_renewed(
    control_plane: Cluster, namespace: str, webhook: WebhookProcess, other: Authority
) -> tuple[list[str], int]:
    """Change objects while the certificate is changed; what failed, and how much was done."""
    failed: list[str] = []
    done = 0
    is_over = asyncio.Event()

    async def change(name: str) -> None:
        nonlocal done
        await cluster.create(OURS["DataSource"], namespace, files(name))
        for number in itertools.count():
            if is_over.is_set():
                return
            patch: Raw = {"spec": {"hdfsLike": {"sourceUriGlobs": [f"/data/{number}/*.parquet"]}}}
            try:
                await cluster.patch(OURS["DataSource"], namespace, name, patch)
            except ClusterError as error:
                failed.append(str(error))
            done += 1

    async with open_cluster(control_plane.kubeconfig) as cluster, asyncio.TaskGroup() as group:
        for number in range(4):
            group.create_task(change(f"source-{number}"))
        for number in range(4):
            install(other.issue(HOST, f"number{number}"), webhook.certificates)
            wanted = number + 2
            await asyncio.to_thread(
                await_text, lambda: str(webhook.log_text().count("certificate in use")), str(wanted)
            )
        before = done
        while done < max(before + 20, 120):
            await asyncio.sleep(0.02)
        is_over.set()
    return failed, done


@pytest.mark.parametrize(("policy", "expected"), [("Fail", 1), ("Ignore", 0)])
def test_without_a_webhook_the_policy_decides(
    control_plane: Cluster,
    namespace: str,
    authority: Authority,
    tmp_path: Path,
    policy: str,
    expected: int,
) -> None:
    issued = authority.issue(HOST)
    with (
        WebhookProcess(tmp_path / "process", control_plane.kubeconfig, issued).running() as webhook,
        asked_about(control_plane, namespace, webhook.port, authority, policy),
    ):
        await_asked(control_plane, namespace)
        webhook.kill()
        assert applied(control_plane.kubectl, namespace, files("a"))[0] == expected
        webhook.start()
        assert applied(control_plane.kubectl, namespace, files("b"))[0] == 0
        assert applied(control_plane.kubectl, namespace, WRONG)[0] == 1


def test_dependants_are_protected_where_that_is_asked_for(
    control_plane: Cluster, namespace: str, authority: Authority, tmp_path: Path
) -> None:
    issued, kubeconfig = authority.issue(HOST), control_plane.kubeconfig
    with (
        WebhookProcess(
            tmp_path / "process", kubeconfig, issued, protectDependants="Deny"
        ).running() as strict,
        asked_about(control_plane, namespace, strict.port, authority),
    ):
        await_asked(control_plane, namespace)
        for raw in [*model(), files("elsewhere")]:
            assert applied(control_plane.kubectl, namespace, raw)[0] == 0
        until_unwarned(control_plane, namespace, output())
        sources = "spec.representations.0.dataSources"
        code, text = applied(
            control_plane.kubectl, namespace, spoilt(model()[2], sources, ["customer", "elsewhere"])
        )
        assert code == 1
        assert "this change breaks OutputDataset/wide" in text
        assert "Forbidden" in text


def test_reviews_are_answered_while_the_api_server_is_away(own_control_plane, authority, tmp_path):
    """It keeps what it knew, and learns afterwards what happened meanwhile."""
    cluster = own_control_plane
    issued = authority.issue(HOST)
    with WebhookProcess(tmp_path / "process", cluster.kubeconfig, issued).running() as webhook:
        space = cluster.create_namespace()
        with asked_about(cluster, space, webhook.port, authority):
            await_asked(cluster, space)
            for raw in model():
                assert applied(cluster.kubectl, space, raw)[0] == 0
            until_unwarned(cluster, space, output())
            cluster.apiserver.kill()
            answer = asyncio.run(asked_directly(webhook, authority, space))
            assert answer["allowed"] is True
            assert "warnings" not in answer
            assert webhook.readiness() == "ok"
            cluster.apiserver.start()
            cluster.await_ready()
            reader = simple("reader", "SELECT * FROM c", source="late")
            assert "Warning" in applied(cluster.kubectl, space, reader)[1]
            assert applied(cluster.kubectl, space, files("late"))[0] == 0
            await_text(lambda: reviewed_anew(cluster, space, reader), "no warning")
        assert webhook.end() == 0


def reviewed_anew(cluster: Cluster, space: str, reader: Raw) -> str:
    changed = spoilt(
        reader, "spec.simpleVirtual.dataQuery", f"SELECT {random.random()} AS a FROM c"
    )
    text = applied(cluster.kubectl, space, changed)[1]
    return text if "Warning" in text else "no warning"


async def asked_directly(webhook: WebhookProcess, authority: Authority, space: str) -> Raw:
    ports = Ports(webhook.port, webhook.ready, webhook.metrics)
    async with asking(ports, authority) as client:
        return await client.review(output(), namespace=space)


async def test_the_certificate_is_kept_in_a_real_cluster(control_plane, namespace, authority):
    """With no right but to read and patch the two objects, as in the chart."""
    raw = configuration(namespace, "nobody", 443, authority.certificate.read_bytes(), "Ignore")
    raw["webhooks"][0]["clientConfig"] = {"service": {"name": "hook", "namespace": namespace}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hook"}, "type": "Opaque"}
    kubectl = control_plane.kubectl
    kubectl.apply(raw, server_side=False)
    kubectl.apply(secret, namespace=namespace, server_side=False)
    settings = OperatorSettings(
        namespace=namespace,
        admission=AdmissionSettings(
            certificate_secret="hook", service="hook", configuration=namespace
        ),
    )
    try:
        async with open_cluster(control_plane.kubeconfig) as cluster:
            rotator = CertificateRotator(cluster, settings)
            await rotator.reconcile()
            data = kubectl.get("secret", "hook", namespace)["data"]
            found = kubectl.get("validatingwebhookconfiguration", namespace)
            client = found["webhooks"][0]["clientConfig"]
            assert client["caBundle"] == data["ca.crt"]
            assert client["service"] == {"name": "hook", "namespace": namespace, "port": 443}
            await rotator.reconcile()
            again = kubectl.get("validatingwebhookconfiguration", namespace)
            assert again["metadata"]["resourceVersion"] == found["metadata"]["resourceVersion"]
    finally:
        run_kubectl(kubectl, "delete", "validatingwebhookconfiguration", namespace)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("admission: {prot: 1}", "settings.yaml:1: there is no field `prot`"),
        ("workers: [\n", "settings.yaml:2: this is not"),
    ],
)
def test_invalid_settings_are_reported_without_a_traceback(tmp_path, settings, expected):
    (tmp_path / "settings.yaml").write_text(settings)
    arguments = ("operator", "webhook", "--settings", str(tmp_path / "settings.yaml"))
    code, _, text = end(snaploom_command(*arguments, folder=tmp_path / "run"), tmp_path / "run")
    assert code == 2
    assert expected in text
    assert "Traceback" not in text
