"""Recipes of `docs/operating` that install, upgrade and remove the chart, by Helm and kubectl.

Each is taken from its page, and run against a real API server, on resources with every optional
section.
"""

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from support.cluster.chart import CHART, NAMESPACE, RELEASE, Raw, Release, helm
from support.cluster.cluster import Cluster, running_control_plane
from support.cluster.sparkcrds import install_spark_crds
from support.declared.fulldeclarations import an_index, complete_file
from support.documentation.examples import BIN, REPOSITORY
from support.documentation.pages import DOCS, blocks_of
from support.operator.operatorprocess import WORKS, OperatorProcess
from support.servers.gotools import go_tool
from support.servers.ports import free_ports

from snaploom.models.kinds import KINDS
from snaploom.models.schemas import crd_name

OPERATOR = "snaploom-operator"
PAUSE = 0.2
"""Seconds between two looks at the cluster."""


@dataclass
class FakeNode:
    """The node of one release, which works while a recipe runs."""

    cluster: Cluster
    folder: Path
    tested: list[str] = field(default_factory=list)
    """Pods of tests that were run, in order."""
    settings: list[Raw] = field(default_factory=list)
    """Of each operator that was started, in order."""
    _operator: OperatorProcess | None = None
    _rolled_out: str = ""

    def run(self, recipe: str, folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
        """Run a recipe by a shell; its exit code, and all that it printed."""
        printed = self.folder / "printed.txt"
        command = ["bash", "-eo", "pipefail", "-c", recipe]
        with printed.open("w") as output:
            process = subprocess.Popen(
                command, cwd=folder, env=dict(environment), stdout=output, stderr=output
            )
        try:
            while not _has_ended(process):
                self.turn()
        finally:
            process.kill()
        self.turn()
        return process.wait(), printed.read_text()

    def turn(self) -> None:
        """Do once what there is to do."""
        found = self.cluster.kubectl.list("deployments,pods", NAMESPACE)
        deployed = [each for each in found if each["metadata"]["name"] == OPERATOR]
        for each in deployed:
            self._roll_out(each)
        if not deployed:
            self.stop()
        for each in found:
            is_new = each["kind"] == "Pod" and each["status"].get("phase") == "Pending"
            if is_new and each["metadata"]["labels"]["app.kubernetes.io/component"] == "test":
                self._test(each)

    def stop(self) -> None:
        if self._operator is not None:
            self._operator.process.terminate()
            self._operator.ended()
            self._operator, self._rolled_out = None, ""

    def _roll_out(self, deployment: Raw) -> None:
        """One process ends before another begins: `strategy: Recreate`."""
        template = json.dumps(deployment["spec"]["template"])
        if template != self._rolled_out:
            self.stop()
            self._operator, self._rolled_out = self._started(deployment), template
        generation = deployment["metadata"]["generation"]
        if deployment.get("status", {}).get("observedGeneration") != generation:
            counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
            observed = dict.fromkeys(counts, 1) | {"observedGeneration": generation}
            self._set_status(deployment, observed)

    def _started(self, deployment: Raw) -> OperatorProcess:
        spec = deployment["spec"]["template"]["spec"]
        (mounted,) = (each["configMap"] for each in spec["volumes"] if each["name"] == "settings")
        stored = self.cluster.kubectl.get("configmap", mounted["name"], NAMESPACE)
        settings: Raw = yaml.safe_load(stored["data"]["settings.yaml"])
        self.settings.append(settings)
        folder = self.folder / f"operator-{len(self.settings)}"
        folder.mkdir(parents=True)
        health, ready, metrics = free_ports(3)
        ports = {"healthPort": health, "readinessPort": ready, "metricsPort": metrics}
        (folder / "settings.yaml").write_text(yaml.safe_dump(settings | ports))
        account = self.cluster.kubeconfig_of(NAMESPACE, spec["serviceAccountName"])
        place = ["--settings", str(folder / "settings.yaml"), "--kubeconfig", str(account)]
        operator = OperatorProcess(folder, place)
        operator.await_output(WORKS)
        return operator

    def _test(self, pod: Raw) -> None:
        """Run the script of a pod with its account."""
        (container,) = pod["spec"]["containers"]
        account = self.cluster.kubeconfig_of(NAMESPACE, pod["spec"]["serviceAccountName"])
        done = subprocess.run(
            [*container["command"], *container["args"]],
            env=os.environ | {"KUBECONFIG": str(account), "HOME": str(self.folder)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        self.tested.append(pod["metadata"]["name"])
        self._set_status(pod, {"phase": "Succeeded"})

    def _set_status(self, stored: Raw, status: Raw) -> None:
        metadata = stored["metadata"]
        patch = json.dumps({"status": status})
        self.cluster.kubectl(
            "patch", stored["kind"].lower(), metadata["name"], "--namespace", NAMESPACE,
            "--subresource=status", "--type=merge", "--patch", patch,
        )  # fmt: skip


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(PAUSE)
    except subprocess.TimeoutExpired:
        return False
    return True


@contextmanager
def fake_node(cluster: Cluster, folder: Path) -> Iterator[FakeNode]:
    """Run a node until the block ends."""
    folder.mkdir()
    node = FakeNode(cluster, folder)
    try:
        yield node
    finally:
        node.stop()


pytestmark = [pytest.mark.installed, pytest.mark.slow, pytest.mark.timeout(600)]

OPERATING, HOW_TO = DOCS / "operating", DOCS / "how-to"
CLUSTER = ("kubectl", "helm ", "snaploom status", "snaploom logs", "make cluster")
"""Words by which a recipe is one for a cluster."""
ROOM = "data"
CRDS = [crd_name(kind) for kind in KINDS]
NO_WAY_OUT = "http://127.0.0.1:9"
"""A proxy that nothing serves, so that every request to the outside fails."""
INSTALL = "helm install snaploom"
UPGRADE = "helm upgrade snaploom"
ROLL_BACK = "helm rollback snaploom"
COMPARE = "helm template snaploom"
UNINSTALL = "kubectl get outputdatasets,skippingindexes --all-namespaces \\\n  --output custom"
EVERYTHING = "kubectl delete datasources"
GONE = (
    "deployments,services,configmaps,secrets,serviceaccounts,roles,rolebindings,clusterroles,"
    "clusterrolebindings,validatingwebhookconfigurations"
)
"""Kinds of what `helm uninstall` takes away."""
RUN_HERE = {
    "air-gapped.md": [INSTALL],
    "upgrade.md": [UPGRADE, ROLL_BACK, COMPARE],
    "uninstall.md": [UNINSTALL, EVERYTHING],
}
"""How the blocks begin that tests of this file run."""
RUN_ELSEWHERE = {
    "uninstall.md": "test_operations_pages.py runs the others: pausing, and letting a resource go",
    "multi-tenancy.md": "test_operations_pages.py runs them on resources with every section",
    "may-i-run-this.md": "by none: settings of a session of one's own, which tests/hostile has",
    "supply-chain.md": "test_supply_bills.py calls .ci/audit.py, which `make audit` calls, with "
    "advisories and bills of its own; the command of `make` is run by no test",
}
"""Pages with blocks that this file does not run, and which tests do."""
HOW_TO_RUN_BY = {
    "argo-cd.md": "tests/cluster/test_argo_cd.py applies these files beside Argo CD's own "
    "controllers; test_gitops_folder.py beside it looks at the folder of Flux, which is not here",
    "install.md": "tests/cluster/charts/test_installation.py, test_rendered_manifests.py; what "
    "an older Helm needs is run here",
    "lineage.md": "by none: an upgrade as that of upgrade.md, with values of its own",
    "look-at-a-page.md": "tests/controller/pages asks the server of pages with tokens; there "
    "is no node here to forward a port of",
    "run-a-cluster.md": "tests/cluster/test_control_plane.py starts the one without nodes and "
    "applies an example; tests/cluster/test_whole_way.py goes the rest on a node of its own",
    "run-the-operator-on-a-laptop.md": "test_operations_pages.py; tests/controller/running too",
    "watch-the-operator.md": "test_operations_pages.py, tests/controller/commands, and the page "
    "about recovery, which rebuilds a status",
}
"""How-tos with recipes for a cluster, and which tests run them."""
NOT_RUN = {
    "air-gapped.md": "step 1 and 2 push images into a registry, by whatever tool pushes there; no "
    "command is shown. Step 3 is `make chart`, whose `helm package` is run here without its lint",
}
"""Instructions of a page that are no block, and why no test runs them."""


@dataclass
class Room:
    """A cluster, a node, and the folder in which a person works."""

    cluster: Cluster
    node: FakeNode
    folder: Path

    def run(self, recipe: str, code: int = 0) -> str:
        """Run a recipe, which has to end with a code; what it printed."""
        path = f"{self.folder / 'programs'}:{BIN}:{os.environ['PATH']}"
        home = {"HOME": str(self.folder), "KUBECONFIG": str(self.cluster.kubeconfig)}
        proxies = {"HTTPS_PROXY": NO_WAY_OUT, "HTTP_PROXY": NO_WAY_OUT, "NO_PROXY": "127.0.0.1"}
        environment = {**os.environ, **home, **proxies, "PATH": path}
        ended, printed = self.node.run(recipe, self.folder, environment)
        assert ended == code, f"{recipe}\n{printed}"
        return printed

    @property
    def release(self) -> Release:
        return Release(self.cluster)

    def resources(self) -> dict[str, tuple[str, object]]:
        return {
            f"{each['kind']}/{each['metadata']['name']}": (each["metadata"]["uid"], each["spec"])
            for each in self.cluster.kubectl.list(",".join(CRDS), ROOM)
        }

    def ours(self, kinds: str) -> str:
        selected = f"--selector=app.kubernetes.io/instance={RELEASE}"
        return self.cluster.kubectl("get", kinds, "--all-namespaces", selected, "--output", "name")


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    """A cluster without our CRDs, in which jobs would run in one namespace."""
    with running_control_plane(tmp_path / "cluster") as plane:
        install_spark_crds(plane.kubectl)
        plane.kubectl("create", "namespace", ROOM)
        with fake_node(plane, tmp_path / "node") as node:
            folder = tmp_path / "home"
            (folder / "programs").mkdir(parents=True)
            (folder / "programs" / "helm").symlink_to(go_tool("helm"))
            kubectl = f'#!/bin/sh\nexec {shlex.join(plane.kubectl.program)} "$@"\n'
            (folder / "programs" / "kubectl").write_text(kubectl)
            (folder / "programs" / "kubectl").chmod(0o755)
            (folder / "charts").symlink_to(REPOSITORY / "charts")
            yield Room(plane, node, folder)


def block(page: str, beginning: str) -> str:
    (found,) = [each for each in recipes(page) if each.startswith(beginning)]
    return found


def recipes(page: str) -> list[str]:
    """The `bash` blocks of a page, also those in lists."""
    return [each.text for each in blocks_of(OPERATING / page) if each.language == "bash"]


def values_of_air_gapped() -> Raw:
    """The values that the page shows."""
    (text,) = [
        each.text for each in blocks_of(OPERATING / "air-gapped.md")
        if each.text.startswith("image:")
    ]  # fmt: skip
    found: Raw = yaml.safe_load(text)
    return found


def installed(room: Room) -> Raw:
    """The values of an air-gapped installation, after it and after all kinds are declared."""
    packed = room.folder / "packed"
    helm("package", "--destination", packed, CHART)
    (archive,) = packed.iterdir()
    shutil.copy(archive, room.folder / "snaploom.tgz")
    values = values_of_air_gapped()
    (room.folder / "values.yaml").write_text(yaml.safe_dump(values))
    room.run(block("air-gapped.md", INSTALL))
    room.cluster.await_crds(*CRDS)
    return values


def declare(room: Room) -> dict[str, tuple[str, object]]:
    """Resources with every optional section; UID and spec of each."""
    room.run("snaploom init my-model")
    model = room.folder / "my-model"
    complete_file(model / "model.yaml", an_index("orders-wide", model))
    room.run(f"kubectl apply --server-side --namespace {ROOM} --filename my-model/model.yaml")
    return room.resources()


def images_of(room: Room) -> set[str]:
    pods = room.release.manifest().pods()
    return {container["image"] for _, spec in pods for container in spec["containers"]}


def test_install_without_a_way_out_takes_all_from_one_registry(room: Room) -> None:
    values = installed(room)
    job = room.node.settings[-1]["spark"]
    for image in (*images_of(room), job["image"]):
        assert image.startswith("registry.example/"), image
    assert f"@{values['image']['digest']}" in " ".join(images_of(room))
    assert job["image"].endswith(values["spark"]["image"]["digest"])
    assert job["imagePullSecrets"] == values["spark"]["application"]["imagePullSecrets"]
    pulled = [spec["imagePullSecrets"] for _, spec in room.release.manifest().pods()]
    assert pulled == [values["imagePullSecrets"]] * 5
    assert {name.partition("/")[0] for name in declare(room)} >= {"OutputDataset", "SkippingIndex"}


def test_upgrade_and_the_way_back_keep_every_resource(room: Room) -> None:
    values = installed(room)
    before = declare(room)
    (room.folder / "values.yaml").write_text(yaml.safe_dump(values | {"logs": {"level": "debug"}}))
    difference = room.run(block("upgrade.md", COMPARE), code=1)
    assert "+    logLevel: debug" in difference
    room.run(block("upgrade.md", UPGRADE))
    assert [each["logLevel"] for each in room.node.settings] == ["info", "debug"]
    assert room.node.tested == [
        f"{RELEASE}-test-{each}" for each in ("operator", "spark", "webhook")
    ]
    assert room.run(block("upgrade.md", COMPARE)) == ""
    assert room.resources() == before
    room.run(block("upgrade.md", ROLL_BACK))
    assert room.node.settings[-1]["logLevel"] == "info"
    assert room.resources() == before


def test_uninstall_leaves_resources_and_the_next_installation_takes_them_over(room: Room) -> None:
    installed(room)
    before = declare(room)
    printed = room.run(block("uninstall.md", UNINSTALL))
    assert "orders-wide" in printed
    assert room.ours(GONE) == ""
    assert room.resources() == before
    room.run(block("air-gapped.md", INSTALL))
    assert room.resources() == before


def test_an_older_helm_takes_over_kinds_that_bear_its_marks(room: Room) -> None:
    room.run("snaploom crds | kubectl apply --server-side --filename -")
    room.cluster.await_crds(*CRDS)
    before = declare(room)
    (marks,) = [
        each.text for each in blocks_of(HOW_TO / "install.md") if each.text.startswith("crds=$(")
    ]
    room.run(marks)
    installed(room)
    assert room.resources() == before
    assert all(name in room.ours("crd") for name in CRDS)


def test_all_of_it_leaves_nothing_of_ours_in_the_cluster(room: Room) -> None:
    installed(room)
    declare(room)
    room.run(block("uninstall.md", UNINSTALL))
    room.run(block("uninstall.md", EVERYTHING))
    names = room.cluster.kubectl("get", "crds,namespaces", "--output", "name")
    assert "snaploom" not in names.replace("sparkoperator", "")


def test_no_recipe_of_a_page_is_run_by_nobody() -> None:
    for page in sorted(OPERATING.glob("*.md")):
        here = RUN_HERE.get(page.name, [])
        others = [each for each in recipes(page.name) if not each.startswith(tuple(here))]
        assert all(block(page.name, beginning) for beginning in here)
        assert bool(others) == (page.name in RUN_ELSEWHERE), (page.name, others)
    assert all((OPERATING / page).exists() for page in NOT_RUN)
    of_cluster = {
        page.name
        for page in HOW_TO.glob("*.md")
        for each in blocks_of(page)
        if each.language == "bash" and any(word in each.text for word in CLUSTER)
    }
    assert of_cluster == set(HOW_TO_RUN_BY)
    with_helm = [each for page in RUN_ELSEWHERE for each in recipes(page) if "helm " in each]
    assert with_helm == [block("uninstall.md", UNINSTALL)]
