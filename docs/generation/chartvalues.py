"""The values of the chart, as models: `values.yaml`, its schema and its README come from here.

What the operator's own settings define has the operator's types and defaults here as well.
"""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import ConfigDict, Field

from generation.chartpods import (
    Fragment,
    Image,
    Labels,
    Name,
    Pods,
    PulledImage,
    PullSecret,
    Resources,
    ServiceAccount,
    Text,
    Texts,
)
from snaploom.models.allowances import Allowances
from snaploom.models.base import ApiModel
from snaploom.models.run import SparkSettings, Submitter
from snaploom_operator.settings import (
    Limits,
    LineageSettings,
    LogFormat,
    OperatorSettings,
    ProtectDependants,
    QueueScheduler,
)

DEFAULTS = OperatorSettings()

InCluster = Literal[Submitter.SPARK_OPERATOR, Submitter.APACHE_SPARK]
"""Who starts jobs in a cluster."""
QueuesInCluster = Literal[
    QueueScheduler.KUEUE,
    QueueScheduler.KUEUE_PODS,
    QueueScheduler.YUNIKORN,
    QueueScheduler.VOLCANO,
]
"""Who has queues in a cluster."""
Port = Annotated[int, Ge(1), Le(65535)]
OwnPort = Annotated[int, Ge(1024), Le(65535)]
"""Where a container of ours listens. Lower ports are root's on many nodes, and ours is not root."""
Namespace = Annotated[str, Field(max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
Namespaces = Annotated[tuple[Namespace, ...], MaxLen(1000)]
Interval = Annotated[
    str,
    Field(
        max_length=32,
        pattern=r"^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$",
    ),
]
"""A length of time, as Prometheus writes it: each unit once, the largest first."""
CertificateTime = Annotated[str, Field(max_length=32, pattern=r"^([0-9]+[hms])+$")]
"""A length of time, as cert-manager writes it: without days and weeks."""
Domain = Annotated[
    str,
    Field(
        max_length=253,
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    ),
]


class Crds(ApiModel):
    """The definitions of our kinds."""

    enabled: bool = True
    """Whether the chart installs and upgrades them."""
    keep: bool = True
    """Whether they, and so every resource of these kinds, outlive `helm uninstall`."""


class Logs(ApiModel):
    """What is logged."""

    format: LogFormat = DEFAULTS.log_format
    """Form of the lines, of drivers too."""
    level: Literal["debug", "info", "warning", "error"] = DEFAULTS.log_level
    """What is logged."""


class Operator(Pods):
    """The Deployment that reconciles; one pod, which is stopped before another starts."""

    service_account: ServiceAccount = ServiceAccount()
    """Who it is for the API server."""
    resources: Resources = Resources(
        requests={"cpu": "100m", "memory": "256Mi"}, limits={"memory": "512Mi"}
    )
    """What a container asks for, and what it may take at most."""
    workers: Annotated[int, Ge(1), Le(256)] = DEFAULTS.workers
    """Resources that are reconciled at once."""
    resync_seconds: Annotated[int, Ge(10), Le(86_400)] = DEFAULTS.resync_seconds
    """Seconds between two full resyncs, besides the watches."""
    submitters: Annotated[tuple[InCluster, ...], MinLen(1), MaxLen(2)] = tuple(
        submitter for submitter in DEFAULTS.submitters if submitter is not Submitter.LOCAL
    )
    """Who may start jobs: `SparkOperator`, `ApacheSpark`, or both. One at least: with none no job
    could ever be started. `Local` is refused: it needs an operator on a developer's machine."""
    limits: Limits = DEFAULTS.limits
    """Runs in flight."""
    queue_scheduler: QueuesInCluster | None = None
    """The scheduler that has the queues of `run.queue`, and what waits in them: `Kueue` (the
    SparkApplication of Kubeflow's operator, as a whole), `KueuePods` (each pod by itself),
    `YuniKorn` or `Volcano`; omitted, there are no queues."""


class Issuer(ApiModel):
    """Who signs the webhook's certificate."""

    name: Name = ""
    """Its name; empty for a self-signed one that the chart creates."""
    kind: Literal["Issuer", "ClusterIssuer"] = "Issuer"
    """Its kind."""
    group: Text = "cert-manager.io"
    """API group of its kind."""


class CertManager(ApiModel):
    """Certificates by cert-manager, which must be installed."""

    enabled: bool = False
    """Whether cert-manager issues the certificate; otherwise the operator does, and renews it."""
    issuer: Issuer = Issuer()
    """Who signs it."""
    duration: CertificateTime = "2160h"
    """How long a certificate is valid, such as `2160h`; cert-manager knows hours, not days."""
    renew_before: CertificateTime = "720h"
    """How long before its end it is renewed; less than `duration`."""


class DisruptionBudget(ApiModel):
    """How many pods may go at a time while nodes are emptied."""

    enabled: bool = True
    """Whether there is such a rule."""
    max_unavailable: Annotated[int, Ge(1), Le(100)] = 1
    """Pods that may be away. A number that must stay is not offered: with one replica no node could
    ever be emptied."""


class Admission(Pods):
    """The validating webhook, a Deployment of its own."""

    enabled: bool = True
    """Whether there is a webhook. Reconciling finds the same faults, after the fact."""
    replicas: Annotated[int, Ge(1), Le(100)] = 2
    """Pods."""
    failure_policy: Literal["Fail", "Ignore"] = "Ignore"
    """What the API server does while no webhook answers: refuse every change of our kinds, or let
    it through, for reconciling to find its faults."""
    timeout_seconds: Annotated[int, Ge(1), Le(30)] = 5
    """How long the API server waits for an answer."""
    namespace_selector: Fragment = Field(default_factory=dict)
    """Namespaces whose resources are checked; empty for all that are watched."""
    protect_dependants: ProtectDependants = DEFAULTS.admission.protect_dependants
    """What is done with a change that would break others: `Warn` lets it through with the list of
    dependants, which then stall; `Deny` refuses it."""
    warn_on_delete: bool = True
    """Whether deleting what others use gives a warning. Deleting is never held up by it."""
    port: OwnPort = DEFAULTS.admission.port
    """Where the container listens, from 1024 on."""
    host_network: bool = False
    """Whether it listens on the node's own address: for clusters whose API server cannot reach
    pods."""
    service_account: ServiceAccount = ServiceAccount()
    """Who it is for the API server."""
    resources: Resources = Resources(
        requests={"cpu": "50m", "memory": "192Mi"}, limits={"memory": "384Mi"}
    )
    """What a container asks for, and what it may take at most."""
    topology_spread_constraints: tuple[Fragment, ...] = (
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
        },
    )
    """How its pods are spread; the chart adds the selector of the pods."""
    pod_disruption_budget: DisruptionBudget = DisruptionBudget()
    """How many pods may go at a time while nodes are emptied."""
    cert_manager: CertManager = CertManager()
    """Certificates by cert-manager."""


class Pages(Pods):
    """Pages of outputs, a Deployment of its own behind the cluster's authentication."""

    enabled: bool = False
    """Whether they are served. Each request needs a token of a user, who sees the namespaces whose
    outputs, sources and indexes they may list."""
    replicas: Annotated[int, Ge(1), Le(100)] = 1
    """Pods."""
    port: OwnPort = DEFAULTS.pages.port
    """Where the container listens, from 1024 on."""
    tls_secret: Name = ""
    """An existing Secret of type `kubernetes.io/tls`, read again when it changes; empty for HTTP,
    where tokens can be read on the way from the proxy to the pod."""
    service_account: ServiceAccount = ServiceAccount()
    """Who it is for the API server."""
    resources: Resources = Resources(
        requests={"cpu": "50m", "memory": "192Mi"}, limits={"memory": "384Mi"}
    )
    """What a container asks for, and what it may take at most."""


class SparkAccount(ServiceAccount):
    """Who the driver is for the API server, in every namespace where jobs run."""

    name: Name = "snaploom-spark"
    """Its name."""


class Comet(ApiModel):
    """What runs with the accelerator COMET have instead, unless their resource names an image."""

    image: Image = Image(repository="snaploom-spark-comet")
    """Image of driver and executors."""
    spark_version: Text = DEFAULTS.comet.spark_version
    """Version of Spark in the image; Comet is built for 4.1."""


class Spark(ApiModel):
    """Defaults of jobs."""

    namespaces: Namespaces = ()
    """Existing namespaces in which the chart creates the driver's account and its role; empty for
    those in `watchNamespaces`, or the release's where that is empty too."""
    service_account: SparkAccount = SparkAccount()
    """Who the driver is for the API server."""
    image: Image = Image(repository="snaploom-spark")
    """Image of driver and executors."""
    application: SparkSettings = SparkSettings(
        spark_version=DEFAULTS.spark.spark_version,
        driver=DEFAULTS.spark.driver,
        executor=DEFAULTS.spark.executor,
    )
    """Spark applications, in the form of `spec.run.spark`; its image and its account come from
    above where they are not given here."""
    comet: Comet = Comet()
    """Of runs with `accelerator: COMET`."""


class Monitor(ApiModel):
    """How the Prometheus operator asks for figures."""

    interval: Annotated[Interval, MinLen(1)] = "30s"
    """Time between two questions."""
    scrape_timeout: Interval = ""
    """How long an answer may take, at most `interval`; empty for Prometheus' own default."""
    relabelings: tuple[Fragment, ...] = ()
    """Rules for the labels of targets, behind ours."""
    metric_relabelings: tuple[Fragment, ...] = ()
    """Rules for the labels of figures, before they are stored."""


class ServiceMonitor(Monitor):
    """A resource by which the Prometheus operator finds our metrics."""

    enabled: bool = False
    """Whether there is one."""
    labels: Labels = Field(default_factory=dict)
    """Labels by which a Prometheus finds it."""


class PrometheusRule(ApiModel):
    """Alerts for the Prometheus operator."""

    enabled: bool = False
    """Whether there are any."""
    labels: Labels = Field(default_factory=dict)
    """Labels by which a Prometheus finds them."""
    longest_run_seconds: Annotated[int, Ge(60)] = 21_600
    """How long a run may take before it counts as stuck."""


class PodMonitor(Monitor):
    """Figures of Spark itself, from the drivers' web pages while they run."""

    enabled: bool = False
    """Whether drivers export them, with a PodMonitor."""
    labels: Labels = Field(default_factory=dict)
    """Labels by which a Prometheus finds it."""


class Dashboard(ApiModel):
    """A Grafana dashboard, in a ConfigMap that Grafana's sidecar finds."""

    enabled: bool = False
    """Whether there is one."""
    labels: Labels = Field(default_factory=lambda: {"grafana_dashboard": "1"})
    """Labels by which the sidecar finds it."""
    annotations: Texts = Field(default_factory=dict)
    """Annotations, such as the folder in Grafana."""


class Metrics(ApiModel):
    """Figures for Prometheus."""

    port: OwnPort = DEFAULTS.metrics_port
    """Where `/metrics` answers, from 1024 on."""
    service_monitor: ServiceMonitor = ServiceMonitor()
    """A resource by which the Prometheus operator finds our metrics."""
    prometheus_rule: PrometheusRule = PrometheusRule()
    """Alerts for the Prometheus operator."""
    pod_monitor: PodMonitor = PodMonitor()
    """Figures of Spark itself, from the drivers while they run."""
    dashboard: Dashboard = Dashboard()
    """A Grafana dashboard."""


class NetworkPolicy(ApiModel):
    """Who may talk to our pods, and to whom they may."""

    enabled: bool = False
    """Whether there are such rules."""
    metrics_from: tuple[Fragment, ...] = ()
    """Peers that may read the metrics; empty for all."""
    pages_from: tuple[Fragment, ...] = ()
    """Peers that may ask for pages, such as the proxy before them; empty for all."""
    api_server_ports: Annotated[tuple[Port, ...], MaxLen(16)] = (443, 6443)
    """Ports of the API server, which pods may reach at any address."""
    egress: tuple[Fragment, ...] = ()
    """Rules for other connections that the pods open."""


class Rbac(ApiModel):
    """Rights in the cluster."""

    create: bool = True
    """Whether the chart creates roles and bindings."""
    aggregate: bool = True
    """Whether the cluster's roles `view`, `edit` and `admin` cover our kinds."""


class ExtraMetadata(ApiModel):
    """Who an object is."""

    model_config = ConfigDict(extra="allow")

    name: Annotated[str, MinLen(1)]
    """Its name."""


class ExtraObject(ApiModel):
    """An object of Kubernetes' API."""

    model_config = ConfigDict(extra="allow")

    api_version: Annotated[str, MinLen(1)]
    """Its API group and version."""
    kind: Annotated[str, MinLen(1)]
    """Its kind."""
    metadata: ExtraMetadata
    """Who it is."""


class Tests(ApiModel):
    """What `helm test` runs: it asks the API server for the rights of our accounts."""

    image: Image = Image(repository="docker.io/alpine/k8s", tag="1.34.1")
    """An image with a shell and kubectl."""


class Values(ApiModel):
    """Every value of the chart."""

    name_override: Name = ""
    """Name of the application in labels and names; empty for the chart's."""
    fullname_override: Name = ""
    """What names of objects begin with; empty for the release's name. Two releases in one cluster
    need different ones."""
    common_labels: Labels = Field(default_factory=dict)
    """Labels of every object."""
    image: PulledImage = PulledImage()
    """Image of the operator, of the webhook and of the pages."""
    image_pull_secrets: tuple[PullSecret, ...] = ()
    """Secrets for pulling it."""
    watch_namespaces: Namespaces = ()
    """Existing namespaces to watch, with permissions in these only; empty for all namespaces."""
    cluster_domain: Domain = DEFAULTS.cluster_domain
    """Domain of Services."""
    lineage: LineageSettings = DEFAULTS.lineage
    """Where jobs send lineage, as OpenLineage events."""
    allow_jdbc_url: bool = DEFAULTS.allow_jdbc_url
    """Whether sources may give a whole JDBC `url`. Its options can make a driver run code in the
    job's pods, so that anyone who may write sources could do that."""
    allow: Allowances = DEFAULTS.allow
    """What declarations may use beyond the built-in lists, one list each;
    `snaploom operator settings` shows both."""
    crds: Crds = Crds()
    """The definitions of our kinds."""
    logs: Logs = Logs()
    """What is logged."""
    health_port: OwnPort = DEFAULTS.health_port
    """Where `/healthz` answers, from 1024 on: it does once the container has started."""
    readiness_port: OwnPort = DEFAULTS.readiness_port
    """Where `/readyz` answers, from 1024 on."""
    operator: Operator = Operator()
    """The Deployment that reconciles."""
    admission: Admission = Admission()
    """The validating webhook."""
    pages: Pages = Pages()
    """Pages of outputs."""
    spark: Spark = Spark()
    """Defaults of jobs."""
    metrics: Metrics = Metrics()
    """Figures for Prometheus."""
    network_policy: NetworkPolicy = NetworkPolicy()
    """Who may talk to our pods, and to whom they may."""
    rbac: Rbac = Rbac()
    """Rights in the cluster."""
    tests: Tests = Tests()
    """What `helm test` runs."""
    extra_objects: tuple[ExtraObject, ...] = ()
    """Objects that are installed with the chart; their texts may be templates of Helm."""
    global_: Fragment = Field(alias="global", default_factory=dict)
    """Values that Helm shares with a chart that this one is part of; none is used."""
