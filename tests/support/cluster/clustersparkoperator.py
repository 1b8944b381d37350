"""The real Spark operator of Kubeflow, as a process of this machine, for any cluster.

It starts Spark's own `spark-submit`, which creates the driver's pod. Where there is no node, a test
then writes into the pod's status what a kubelet would have written.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pyspark
from support.cluster.cluster import Cluster, Server, built
from support.servers.ports import free_port

ACCOUNT = "spark-operator"
KINDS = ("sparkapplications", "scheduledsparkapplications", "sparkconnects")
SERVER = "jsonpath={.clusters[0].cluster.server}"


@contextmanager
def running_spark_operator(cluster: Cluster) -> Iterator[Server]:
    """Its CRDs and the operator; it may do everything, since it is not what is tested."""
    kubectl = cluster.kubectl
    program = built("sparkoperator")
    kubectl("apply", "--server-side", "-f", str(program.parent / "crds"))
    cluster.await_crds(*(f"{kind}.sparkoperator.k8s.io" for kind in KINDS))
    kubectl("create", "serviceaccount", ACCOUNT, "--namespace", "default")
    subject = f"--serviceaccount=default:{ACCOUNT}"
    kubectl("create", "clusterrolebinding", ACCOUNT, "--clusterrole=cluster-admin", subject)
    port = free_port()
    health = f"127.0.0.1:{port}"
    flags = ["--enable-ui-service=false", f"--health-probe-bind-address={health}"]
    server = Server(
        "spark-operator",
        (program, "controller", "start", *flags),
        cluster.folder / "spark-operator.log",
        _environment(cluster),
    )
    server.start()
    try:
        server.await_ready(f"http://{health}/readyz")
        yield server
    finally:
        server.kill()


def _environment(cluster: Cluster) -> dict[str, str]:
    """What it finds in its pod otherwise."""
    address = urlsplit(cluster.kubectl("config", "view", "--minify", "--output", SERVER))
    return {
        "KUBECONFIG": str(cluster.kubeconfig_of("default", ACCOUNT)),
        "KUBERNETES_SERVICE_HOST": str(address.hostname),
        "KUBERNETES_SERVICE_PORT": str(address.port),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "HOME": str(cluster.folder),
        "PATH": os.environ["PATH"],
    }
