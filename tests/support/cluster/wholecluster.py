"""A cluster in which everything runs for real: nodes, Spark's operator, and our images.

It is this machine's own, or any that a kubeconfig names in E2E_KUBECONFIG. Images then come from a
registry of that cluster's, by the names in E2E_OPERATOR_IMAGE, E2E_SPARK_IMAGE and E2E_COMET_IMAGE;
E2E_HOST is the address at which its pods reach servers of this machine, if they do at all.

What is installed is the checkout, or files of releases that the environment names (`artifacts`).
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.cluster.chart import CHART, NAMESPACE, Release
from support.cluster.cluster import (
    HOST_VARIABLE,
    SERVICE,
    WHOLE_VARIABLE,
    Cluster,
    ControlPlane,
    Server,
)
from support.cluster.clusterkubectl import KubectlFailed
from support.cluster.clusternode import ADDRESS, NODE, import_archive, running_cluster
from support.cluster.clustersparkoperator import ACCOUNT, running_spark_operator
from support.cluster.images import COMET_IMAGE, OPERATOR_IMAGE, SPARK_IMAGE, document, image_archive
from support.documentation.packages import released, the_file


class NotAsExpected(AssertionError):
    """The cluster did not reach an expected state; with all that it shows of it."""


def answers(kubectl: Callable[..., str], asked: Sequence[tuple[str, ...]]) -> str:
    """What kubectl answers, as on a terminal; a refusal is an answer too.

    Args:
        kubectl: takes the arguments of a command.
        asked: the commands.
    """
    return "\n".join(f"$ kubectl {' '.join(each)}\n{_answer(kubectl, each)}" for each in asked)


def _answer(kubectl: Callable[..., str], asked: tuple[str, ...]) -> str:
    try:
        return kubectl(*asked)
    except KubectlFailed as failure:
        return str(failure)


@dataclass(frozen=True)
class Stages:
    """Seconds by stage, in the order of their ends."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure what is done within; nothing is noted of what fails."""
        started = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - started

    def table(self) -> str:
        return "\n".join(f"{taken:7.1f} s  {name}" for name, taken in self.seconds.items())


EARLIER_VARIABLE = "EARLIER"
CHART_PATTERN = "snaploom-[0-9]*.tgz"
"""Of the chart's archive among the files of a release."""


@dataclass(frozen=True)
class Image:
    reference: str
    """What pods call it; without a registry, as a kubelet completes it."""
    archive: Path
    """OCI."""


@dataclass(frozen=True)
class Artifacts:
    """What is installed in a cluster."""

    chart: Path
    """A folder, or an archive of Helm's."""
    operator: Image
    spark: Image
    comet: Image | None
    """Of runs with an accelerator; None for releases without it."""


def present_chart() -> Path:
    """The chart of the release under test, or else of the checkout."""
    folder = released()
    return the_file(folder, CHART_PATTERN) if folder else CHART


def present() -> Artifacts:
    """Those of the release under test, or else of the checkout."""
    folder = released()
    if folder is not None:
        return of_release(folder)
    return Artifacts(
        present_chart(),
        Image(OPERATOR_IMAGE, image_archive("operator")),
        Image(SPARK_IMAGE, image_archive("spark")),
        Image(COMET_IMAGE, image_archive("spark-comet")),
    )


def earlier() -> Artifacts | None:
    """Those of the release before, where the environment names its folder."""
    folder = os.environ.get(EARLIER_VARIABLE)
    return of_release(Path(folder)) if folder else None


def of_release(folder: Path) -> Artifacts:
    """Those of a release; pods name its images by their digests."""
    operator, spark, *comet = (
        Image(f"snaploom-{name}@{digest_of(archive)}", archive)
        for name in ("operator", "spark", "spark-comet")
        for archive in folder.glob(f"snaploom-{name}-[0-9]*.oci.tar")
    )
    return Artifacts(the_file(folder, CHART_PATTERN), operator, spark, next(iter(comet), None))


def digest_of(archive: Path) -> str:
    """The digest of the only image of an archive, by which a registry would serve it."""
    (described,) = document(archive, "index.json")["manifests"]
    return str(described["digest"])


OPERATOR_VARIABLE = "E2E_OPERATOR_IMAGE"
SPARK_VARIABLE = "E2E_SPARK_IMAGE"
COMET_VARIABLE = "E2E_COMET_IMAGE"
RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"
PATIENCE = "--timeout=900s"
IMAGES = 6_000_000_000
"""Bytes that a node's container runtime needs for the images of a release."""
_SMALL: Mapping[str, str] = {
    "spark.kubernetes.driver.request.cores": "100m",
    "spark.kubernetes.executor.request.cores": "100m",
    # As many tasks as there are files: with Spark's 200, starting them is most of the time.
    "spark.sql.shuffle.partitions": "4",
    # Only the first compiler of the JVM, as in all tests (tests/conftest.py).
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.executor.defaultJavaOptions": "-XX:TieredStopAtLevel=1",
}

Raw = dict[str, Any]


@dataclass(frozen=True)
class Product:
    """What can be installed: a chart, and images as pods of this cluster name them."""

    chart: Path
    operator_image: str
    spark_image: str
    comet_image: str
    """Empty for releases without it."""


@dataclass(frozen=True)
class WholeCluster:
    cluster: Cluster
    first: Product
    """What is installed."""
    newer: Product
    """What it is upgraded to; the same, unless the environment names an earlier release."""
    host: str
    """Address at which pods reach servers of this machine; empty where they do not."""
    volumes: Path | None = None
    """Where volumes of the only node are; None for a cluster that provides volumes itself."""
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    """Spark's settings there."""

    @property
    def release(self) -> Release:
        return Release(self.cluster)

    def create_namespaces(self, *names: str) -> None:
        """Namespaces of the strictest pod security."""
        for name in names:
            self.cluster.kubectl("create", "namespace", name)
            self.cluster.kubectl("label", "namespace", name, RESTRICTED)

    def values(self, product: Product, *namespaces: str) -> Raw:
        """Values of the chart for jobs in some namespaces, and for a small machine."""
        small: Raw = {"cores": 1, "memory": "600m"}
        application: Raw = {
            "driver": small,
            "executor": small | {"instances": 1},
            "sparkConf": {**_SMALL, **self.spark_conf},
        }
        comet = product.comet_image and {"comet": {"image": _split(product.comet_image)}}
        return {
            "image": _split(product.operator_image),
            "admission": {"replicas": 1},
            "spark": {
                "image": _split(product.spark_image),
                "namespaces": [*namespaces],
                "application": application,
                **(comet or {}),
            },
        }

    def install(self, *namespaces: str) -> None:
        """Install the chart for jobs in some namespaces, and wait until the operator is running."""
        self.release.upgrade(self.values(self.first, *namespaces), self.first.chart)
        self.await_operator()

    def upgrade(self, chart: Path, settings: Raw, *namespaces: str) -> None:
        """Upgrade to the newer images, by a chart and with further values, and wait likewise."""
        self.release.upgrade(self.values(self.newer, *namespaces) | settings, chart)
        self.await_operator()

    def await_operator(self) -> None:
        """Wait until the operator of the installed chart is the only one, and works."""
        self._roll_out("snaploom-operator")

    def await_webhook(self) -> None:
        """Wait until the webhook has its certificate, which a kubelet looks for once a minute."""
        self._roll_out("snaploom-webhook")

    def _roll_out(self, name: str) -> None:
        self.cluster.kubectl("rollout", "status", f"deployment/{name}", "-n", NAMESPACE, PATIENCE)

    def offer_volume(self, namespace: str, claim: str) -> None:
        """Create the volume of a claim, where the cluster does not."""
        if self.volumes is None:
            return
        path = self.volumes / f"{namespace}-{claim}"
        path.mkdir(parents=True)
        name = {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": namespace, "name": claim},
            "local": {"path": str(path)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [name]}]}},
        }
        volume = {"apiVersion": "v1", "kind": "PersistentVolume", "spec": spec}
        self.cluster.kubectl.apply(volume | {"metadata": {"name": f"{namespace}-{claim}"}})


@dataclass(frozen=True)
class OwnCluster:
    """A cluster of this machine's own, whose servers can be stopped."""

    whole: WholeCluster
    volumes: Path
    """Where its volumes are."""
    plane: ControlPlane
    spark_operator: Server


@contextmanager
def whole_cluster(folder: Path, stages: Stages) -> Iterator[WholeCluster]:
    """The cluster that the environment names, or else one of this machine's own."""
    given = os.environ.get(WHOLE_VARIABLE)
    if given is not None:
        with _given(folder, Path(given)) as whole:
            yield whole
        return
    with own_cluster(folder, stages) as own:
        yield own.whole


@contextmanager
def own_cluster(folder: Path, stages: Stages) -> Iterator[OwnCluster]:
    """A cluster of this machine's own."""
    newer = present()
    first = earlier() or newer
    with ExitStack() as stack:
        with stages.stage("cluster up"):
            plane = stack.enter_context(running_cluster(folder))
        with stages.stage("images imported"):
            products = {each: _imported(folder, each) for each in (first, newer)}
        with stages.stage("Spark's operator"):
            spark_operator = stack.enter_context(running_spark_operator(plane))
        # There is no DNS, by which a driver would find the API server otherwise, and executors of
        # Spark before 4.3 the driver.
        master = {
            "spark.kubernetes.driver.master": f"https://{SERVICE}:443",
            "spark.kubernetes.executor.useDriverPodIP": "true",
        }
        volumes = folder / "volumes"
        ours = products[first], products[newer]
        whole = WholeCluster(plane, *ours, ADDRESS, volumes, master)
        yield OwnCluster(whole, volumes, plane, spark_operator)


def _imported(folder: Path, artifacts: Artifacts) -> Product:
    images = (artifacts.operator, artifacts.spark, artifacts.comet)
    for image in filter(None, images):
        import_archive(folder, image.reference, image.archive)
    return Product(artifacts.chart, *(image.reference if image else "" for image in images))


@contextmanager
def _given(folder: Path, kubeconfig: Path) -> Iterator[WholeCluster]:
    cluster = Cluster(folder, kubeconfig)
    product = Product(
        present_chart(),
        os.environ.get(OPERATOR_VARIABLE, OPERATOR_IMAGE),
        os.environ.get(SPARK_VARIABLE, SPARK_IMAGE),
        os.environ.get(COMET_VARIABLE, COMET_IMAGE),
    )
    whole = WholeCluster(cluster, product, product, os.environ.get(HOST_VARIABLE, ""))
    if "sparkapplications.sparkoperator.k8s.io" in cluster.kubectl("get", "crds", "-o", "name"):
        yield whole  # somebody runs it there
        return
    try:
        with running_spark_operator(cluster):
            yield whole
    finally:
        found = cluster.kubectl("get", "crds", "-o", "name").split()
        theirs = [name for name in found if name.endswith(".sparkoperator.k8s.io")]
        cluster.kubectl("delete", *theirs, f"clusterrolebinding/{ACCOUNT}")
        cluster.kubectl("delete", "serviceaccount", ACCOUNT, "--namespace", "default")


def _split(image: str) -> Raw:
    """An image as the chart's values have it."""
    if "@" in image:
        repository, _, digest = image.partition("@")
        return {"repository": repository, "digest": digest}
    repository, _, tag = image.rpartition(":")
    return {"repository": repository, "tag": tag}
