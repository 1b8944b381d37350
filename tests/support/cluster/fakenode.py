"""What nodes would do for a release on a control plane that has none.

The operator's Deployment is a process on this machine, by the settings and as the account of the
release; pods of `helm test` are their own scripts, run as their accounts. No image is pulled, and
the webhook has no pods: tests/cluster/test_whole_way.py runs these.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from support.cluster.chart import NAMESPACE, Raw
from support.cluster.cluster import Cluster
from support.operator.operatorprocess import WORKS, OperatorProcess
from support.servers.ports import free_ports

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
        """End the operator's process, as when its pod is deleted."""
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
