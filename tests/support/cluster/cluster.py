"""A real Kubernetes API server for tests: started in seconds, in a folder of its own.

It is etcd, kube-apiserver and kube-controller-manager without nodes: objects are stored, checked,
watched and collected as anywhere, and no pod ever runs. Any other cluster does as well: a
kubeconfig in SNAPLOOM_TEST_KUBECONFIG, and nothing is started.
"""

import itertools
import json
import os
import shutil
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from support.cluster.clusterkubectl import (
    Kubectl,
    KubectlFailed,
    certificate_user,
    write_kubeconfig,
)
from support.servers.certificates import Authority, issue_key_pair
from support.servers.ports import free_ports

from snaploom.models.kinds import KINDS
from snaploom.models.schemas import crd_name

BUILD = Path(__file__).parents[3] / ".ci" / "cluster"
PATIENCE = 5.0
"""Seconds for a clean end; an API server waits for its clients' watches far longer."""
TAIL = 3000
"""Characters of a log that an error shows."""


@cache
def built(program: str = "kubebox") -> Path:
    """A Go program of `tests/cluster`; the project's own script builds it once.

    Raises:
        RuntimeError: it cannot be built here; the script has printed why.
    """
    done = subprocess.run([BUILD, program], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{program} cannot be built: see the output of {BUILD}")
    return Path(done.stdout.strip())


@dataclass
class Server:
    """One server, which is stopped and started again by the same command."""

    name: str
    command: Sequence[str | Path]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; its output is added to the log."""
        # It ends when its input does, which also happens when this process is killed.
        settings = {"KUBEBOX_ENDS_WITH_STDIN": "1", **self.environment}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=os.environ | settings,
                start_new_session=True,  # Ctrl-C is for this process, which then ends them
            )

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, f"{self.name} was not started"
        return self._process

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def has_ended(self) -> bool:
        """Whether it was started, and ended on its own."""
        return self._process is not None and self._process.poll() is not None

    def await_ready(self, url: str) -> None:
        """Wait until it answers at a URL."""
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline and not self.has_ended:
            try:
                with urllib.request.urlopen(url, timeout=5):
                    return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError(f"{self.name} is not ready.\n{self.tail()}")

    def stop(self) -> None:
        """Ask it to end, and end it when it takes too long."""
        if self.is_running:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()
        self._forget()

    def kill(self) -> None:
        """End it at once, as a crash would."""
        if self.is_running:
            self.process.kill()
            self.process.wait()
        self._forget()

    def close_input(self) -> None:
        """End it as the end of this process would."""
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        self._process = None

    def tail(self) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return f"{self.name} ({self.log}):\n{text[-TAIL:]}"

    def _forget(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        self._process = None


CRDS = Path(__file__).parents[3] / "crds"
KUBECONFIG_VARIABLE = "SNAPLOOM_TEST_KUBECONFIG"
WHOLE_VARIABLE = "E2E_KUBECONFIG"
"""Names a cluster with nodes, for the tests marked `whole`."""
HOST_VARIABLE = "E2E_HOST"
"""Address at which that cluster's pods reach servers of this machine, if they do."""
READY_SECONDS = 120.0
"""It takes some 8 seconds on its own; a machine full of other tests takes longer."""
CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "resourcequota-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "ttl-after-finished-controller",
)
"""Those that matter where no pod runs; each of the forty others costs memory and time."""

LOOPBACK = "127.0.0.1"
SERVICE = "10.96.0.1"
"""Where pods find the API server, through its own Service."""

_numbers = itertools.count(1)


class Cluster:
    """A cluster and the kubeconfig of its administrator."""

    def __init__(self, folder: Path, kubeconfig: Path) -> None:
        self.folder = folder
        self.kubeconfig = kubeconfig
        self.kubectl = Kubectl(kubectl_program(), kubeconfig, folder)

    def install_crds(self) -> None:
        """Apply our CRDs and wait until the API server serves the kinds."""
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CRDS))
        self.await_crds(*(crd_name(kind) for kind in KINDS))

    def await_crds(self, *names: str) -> None:
        """Wait until the API server serves the kinds of these CRDs."""
        crds = [f"crd/{name}" for name in names]
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                self.kubectl("wait", "--for=condition=Established", "--timeout=60s", *crds)
                return
            except KubectlFailed as failure:
                # For a moment the list of conditions is null, at which kubectl gives up.
                if "accessor error" not in failure.stderr or time.monotonic() > deadline:
                    raise

    def delete_crds(self) -> None:
        """Delete our CRDs, with all that is of their kinds, and wait until they are gone."""
        names = (crd_name(kind) for kind in KINDS)
        self.kubectl("delete", "crd", "--ignore-not-found", "--wait=false", *names)
        self.await_deletion_of_crds()

    def await_deletion_of_crds(self) -> None:
        """Wait until our CRDs, which somebody deletes, are gone.

        The API server looks for what is of a kind while it opens its storage anew, fails, and
        tries again minutes later; a CRD that changes meanwhile is looked at right away.
        """
        ours = {f"customresourcedefinition.apiextensions.k8s.io/{crd_name(kind)}" for kind in KINDS}
        deadline = time.monotonic() + READY_SECONDS
        while left := sorted(ours.intersection(self.kubectl("get", "crd", "-o", "name").split())):
            if time.monotonic() > deadline:
                raise AssertionError(f"not deleted: {left}")
            with suppress(KubectlFailed):  # gone meanwhile
                changed = f"asked-again={time.monotonic_ns()}"
                self.kubectl("annotate", "--overwrite", *left, changed)

    def create_namespace(self, prefix: str = "test") -> str:
        """Create a namespace; returns its name."""
        name = f"{prefix}-{os.getpid()}-{next(_numbers)}-{time.time_ns() // 1_000_000:x}"
        self.kubectl("create", "namespace", name)
        return name

    def delete_namespace(self, name: str) -> None:
        """Delete a namespace without waiting until it is empty."""
        self.kubectl("delete", "namespace", name, "--wait=false")

    def kubeconfig_of(self, namespace: str, service_account: str) -> Path:
        """A kubeconfig by which a client is that ServiceAccount, for an hour."""
        token = self.kubectl(
            "create", "token", service_account, "--namespace", namespace, "--duration=1h"
        )
        config = json.loads(self.kubectl("config", "view", "--raw", "--minify", "-o", "json"))
        config["users"][0]["user"] = {"token": token.strip()}
        path = self.folder / f"{namespace}-{service_account}.kubeconfig"
        path.write_text(json.dumps(config))
        path.chmod(0o600)
        return path


class ControlPlane(Cluster):
    """A cluster of our own, whose servers can be stopped, killed and started one by one."""

    def __init__(self, folder: Path, address: str = LOOPBACK) -> None:
        """Prepare everything; `start` starts it.

        Args:
            folder: where data, keys and logs go. What etcd kept there earlier is found again.
            address: where the API server is found; with nodes, one that pods reach too.
        """
        etcd_port, peer_port, api_port = free_ports(3)
        keys = folder / "keys"
        shutil.rmtree(keys, ignore_errors=True)
        keys.mkdir(parents=True)
        self.address = address
        self.url = f"https://{address}:{api_port}"
        self.authority = Authority(keys, "authority")
        self._admin = self.authority.issue_client("admin", "system:masters")
        self._tokens = issue_key_pair(keys, "tokens")
        self.etcd = _server(folder, "etcd", _etcd(folder, etcd_port, peer_port))
        self.apiserver = _server(folder, "kube-apiserver", self._apiserver(etcd_port, api_port))
        self.controllers = _server(folder, "kube-controller-manager", self._controllers(keys))
        kubeconfig = self.write_kubeconfig(folder / "kubeconfig", "admin", "system:masters")
        super().__init__(folder, kubeconfig)

    @property
    def signing_key(self) -> Path:
        """What tokens of service accounts are signed with."""
        return self._tokens.private

    @property
    def servers(self) -> tuple[Server, ...]:
        """All servers, in the order of their start."""
        return (self.etcd, self.apiserver, self.controllers)

    def start(self) -> None:
        """Start all servers and wait until objects can be created."""
        self.etcd.start()
        self.apiserver.start()
        self.await_ready()
        self.controllers.start()  # not earlier: it ends when it waits longer than 10 seconds
        self._await(lambda: self._answers("/api/v1/namespaces/default/serviceaccounts/default"))

    def close(self) -> None:
        """End all servers at once: what etcd had confirmed is in its files."""
        for server in reversed(self.servers):
            server.kill()

    def await_ready(self) -> None:
        """Wait until the API server reports that it is ready.

        Raises:
            RuntimeError: a server ended, or it takes too long; with the ends of the logs.
        """
        self._await(lambda: self._answers("/readyz"))

    def check_running(self) -> None:
        """Look whether a server has ended by itself.

        Raises:
            RuntimeError: one has; with the ends of the logs.
        """
        if any(server.has_ended for server in self.servers):
            raise RuntimeError(f"a server of the cluster has ended.\n{self._tails()}")

    def _await(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not condition():
            self.check_running()
            if time.monotonic() > deadline:
                raise RuntimeError(f"the cluster is not ready.\n{self._tails()}")
            time.sleep(0.05)

    def _answers(self, path: str) -> bool:
        context = ssl.create_default_context(cafile=self.authority.certificate)
        context.load_cert_chain(self._admin.certificate, self._admin.key)
        try:
            with urllib.request.urlopen(self.url + path, context=context, timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:  # refused, not ready (HTTPError is one), timed out
            return False

    def _tails(self) -> str:
        return "\n".join(server.tail() for server in self.servers)

    def write_kubeconfig(self, path: Path, name: str, organization: str) -> Path:
        """Write a kubeconfig by which a client is a user of a group; its path."""
        issued = self.authority.issue_client(name, organization)
        authority = self.authority.certificate.read_bytes()
        return write_kubeconfig(path, self.url, authority, certificate_user(issued))

    def _apiserver(self, etcd_port: int, port: int) -> list[str]:
        names = ("localhost", "kubernetes.default.svc", self.address, SERVICE)
        issued = self.authority.issue(*names)
        kubelets = self.authority.issue_client("kube-apiserver", "system:masters")
        # No pod looks for it at a loopback address, which its own Endpoints would refuse.
        reconciler = "none" if self.address == LOOPBACK else "lease"
        return [
            f"--etcd-servers=http://127.0.0.1:{etcd_port}",
            f"--bind-address={self.address}",
            f"--advertise-address={self.address}",
            f"--secure-port={port}",
            f"--endpoint-reconciler-type={reconciler}",
            f"--kubelet-client-certificate={kubelets.certificate}",
            f"--kubelet-client-key={kubelets.key}",
            "--kubelet-preferred-address-types=InternalIP",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._tokens.public}",
            f"--service-account-signing-key-file={self._tokens.private}",
            f"--tls-cert-file={issued.certificate}",
            f"--tls-private-key-file={issued.key}",
            f"--client-ca-file={self.authority.certificate}",
            "--authorization-mode=Node,RBAC",
            "--allow-privileged",
            "--profiling=false",
        ]

    def _controllers(self, keys: Path) -> list[str]:
        user = "system:kube-controller-manager"
        kubeconfig = self.write_kubeconfig(keys / "controllers.kubeconfig", user, user)
        return [
            f"--kubeconfig={kubeconfig}",
            f"--controllers={','.join(CONTROLLERS) if self.address == LOOPBACK else '*'}",
            f"--service-account-private-key-file={self._tokens.private}",
            f"--root-ca-file={self.authority.certificate}",
            "--use-service-account-credentials",
            "--leader-elect=false",
            "--secure-port=0",
            "--kube-api-qps=200",  # so that what a test leaves behind is soon gone
            "--kube-api-burst=400",
        ]


@contextmanager
def running_control_plane(folder: Path, address: str = LOOPBACK) -> Iterator[ControlPlane]:
    """Run a control plane without our CRDs until the block ends."""
    plane = ControlPlane(folder, address)
    try:
        plane.start()
        yield plane
    finally:
        plane.close()


@contextmanager
def any_cluster(folder: Path) -> Iterator[Cluster]:
    """The cluster that the environment names, or else a control plane of our own; with our CRDs."""
    if given := os.environ.get(KUBECONFIG_VARIABLE):
        cluster = Cluster(folder, Path(given))
        cluster.install_crds()
        yield cluster
        return
    with running_control_plane(folder) as plane:
        plane.install_crds()
        yield plane


def _server(folder: Path, name: str, arguments: Sequence[str]) -> Server:
    return Server(name, (built(), name, *arguments), folder / f"{name}.log")


def _etcd(folder: Path, port: int, peer_port: int) -> list[str]:
    url, peer_url = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
    return [
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=default={peer_url}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def kubectl_program() -> tuple[str, ...]:
    """Ours; a person who gives a cluster has a kubectl too, and perhaps no Go."""
    is_given = not {KUBECONFIG_VARIABLE, WHOLE_VARIABLE}.isdisjoint(os.environ)
    if is_given and (found := shutil.which("kubectl")):
        return (found,)
    return (str(built()), "kubectl")
