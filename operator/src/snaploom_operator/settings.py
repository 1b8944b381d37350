"""The operator's settings: models of one YAML file, and reading it."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge, Le, MaxLen
from pydantic import Field, ValidationError

from snaploom.loading.composer import Composed, compose, plain, position_of, split_path
from snaploom.loading.pydanticerrors import findings_of
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.base import ApiModel
from snaploom.models.common import ResourceName, ShortText
from snaploom.models.run import DriverSettings, ExecutorSettings, SparkSettings, Submitter
from snaploom_operator.errors import SettingsInvalid

Port = Annotated[int, Ge(0), Le(65535)]
LogFormat = Literal["json", "text"]
ServerUrl = Annotated[str, Field(max_length=2048, pattern=r"^(https?://[^\s@?#/]+(/[^\s?#]*)?)?$")]
"""A URL without user, password and query; or empty."""


class ProtectDependants(StrEnum):
    """The answer of admission to a change that breaks dependants (rule R15)."""

    WARN = "Warn"
    """It is allowed, with a warning that lists the dependants; these stall."""
    DENY = "Deny"
    """It is denied."""


class Limits(ApiModel):
    """Runs in flight."""

    runs: Annotated[int, Ge(1), Le(10_000)] = 50
    """In total; spark-operator manages some 130 submissions a minute (rule R5)."""
    runs_per_namespace: Annotated[int, Ge(1), Le(10_000)] = 20
    """In one namespace."""


class QueueScheduler(StrEnum):
    """The scheduler that has the queues of `run.queue`, and what waits in them."""

    KUEUE = "Kueue"
    """Kueue: the SparkApplication of Kubeflow's operator, as a whole."""
    KUEUE_PODS = "KueuePods"
    """Kueue: each pod of driver and executors by itself."""
    YUNIKORN = "YuniKorn"
    """Apache YuniKorn: pods."""
    VOLCANO = "Volcano"
    """Volcano: pods."""


KUEUE = (QueueScheduler.KUEUE, QueueScheduler.KUEUE_PODS)
"""Those that write a Workload for what waits, with the answer of the queue."""


class AdmissionSettings(ApiModel):
    """The webhook."""

    port: Port = 9443
    """Port at which it listens; 0 for any free one."""
    protect_dependants: ProtectDependants = ProtectDependants.WARN
    """Its answer to a change that breaks dependants."""
    certificate_folder: ShortText = "/etc/snaploom/certificates"
    """Folder of `tls.crt` and `tls.key`; they are reloaded when they change."""
    is_certificate_rotated: bool = True
    """True if the controller renews the webhook's certificate in its Secret (not with
    cert-manager)."""
    certificate_secret: ResourceName = "snaploom-webhook"
    """The Secret."""
    service: ResourceName = "snaploom-webhook"
    """The Service of the webhook, whose name the certificate has."""
    configuration: ResourceName = "snaploom"
    """The ValidatingWebhookConfiguration whose `caBundle` is kept up to date."""
    passed_users: Annotated[tuple[ShortText, ...], MaxLen(16)] = ()
    """Names of users whose writes are not reviewed: the controller's own account."""
    view_age_limit_seconds: Annotated[int, Ge(60), Le(86_400)] = 900
    """Age of the webhook's cache above which the webhook is not ready; a working watch has a
    bookmark every minute."""


class PagesSettings(ApiModel):
    """The pages of outputs, where `snaploom operator pages` serves them."""

    port: Port = 8765
    """Port at which they are served; 0 for any free one. `snaploom serve` has the same."""
    certificate_folder: ShortText = ""
    """Folder of `tls.crt` and `tls.key`, which are reloaded when they change; empty for HTTP
    without TLS."""


class ApiKey(ApiModel):
    """A key of a Secret that every namespace with jobs must have."""

    secret: ResourceName
    """Name of the Secret."""
    key: ShortText = "apiKey"
    """Key of it."""


class LineageSettings(ApiModel):
    """The server to which jobs send lineage, as OpenLineage events."""

    url: ServerUrl = ""
    """Address of the server; empty for none. Events go to `/api/v1/lineage`, unless it has a
    path."""
    namespace: ShortText = "snaploom"
    """Namespace of our jobs there."""
    api_key: ApiKey | None = None
    """The API key of the server; drivers get it as an environment variable."""


NO_LINEAGE = LineageSettings()
"""Jobs send no lineage."""


class CometJobs(ApiModel):
    """The image of runs with the accelerator COMET whose resource names none."""

    image: ShortText = "snaploom-spark-comet:latest"
    """Image of driver and executors."""
    spark_version: Annotated[str, MaxLen(32)] = "4.1.4"
    """Version of Spark in the image."""


class OperatorSettings(ApiModel):
    """The settings file."""

    namespace: ResourceName = "snaploom-system"
    """Namespace of the operator itself."""
    lease: ResourceName = "snaploom-operator"
    """Name of its Lease, which the active process holds. Another operator in the same namespace
    needs another name."""
    watch_namespaces: Annotated[tuple[ResourceName, ...], MaxLen(1000)] = ()
    """Namespaces to watch; empty for all."""
    submitters: Annotated[tuple[Submitter, ...], MaxLen(3)] = (Submitter.SPARK_OPERATOR,)
    """Submitters that may start jobs; `Local` counts only with `--local` (rule R10). `snaploom
    operator run` refuses a list without a usable one."""
    spark: SparkSettings = SparkSettings(
        image="snaploom-spark:latest",
        spark_version="4.3.0",
        service_account_name="snaploom-spark",
        driver=DriverSettings(cores=1, memory="2g"),
        executor=ExecutorSettings(instances=2, cores=1, memory="2g"),
    )
    """Defaults of Spark applications."""
    comet: CometJobs = CometJobs()
    """Image of runs with the accelerator COMET."""
    limits: Limits = Limits()
    """Runs in flight."""
    queue_scheduler: QueueScheduler | None = None
    """The scheduler that has the queues of `run.queue`; omitted, no resource may name one."""
    admission: AdmissionSettings = AdmissionSettings()
    """The webhook."""
    pages: PagesSettings = PagesSettings()
    """The pages of outputs."""
    workers: Annotated[int, Ge(1), Le(256)] = 8
    """Resources that are reconciled at once."""
    resync_seconds: Annotated[int, Ge(10), Le(86_400)] = 600
    """Seconds between two full resyncs, besides the watches."""
    health_port: Port = 8080
    """Port of `/healthz`; 0 for any free one."""
    readiness_port: Port = 8081
    """Port of `/readyz`; 0 for any free one."""
    metrics_port: Port = 9090
    """Port of `/metrics`; 0 for any free one."""
    log_format: LogFormat = "json"
    """Format of log lines, of drivers too."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level that is logged."""
    allow_jdbc_url: bool = False
    """True if sources may have a whole JDBC `url`. Its options can make a driver run code in the
    job's pods, so that anyone who may write sources could do that."""
    allow: Allowances = NO_ALLOWANCES
    """Additions to the built-in lists of what declarations may use."""
    lineage: LineageSettings = NO_LINEAGE
    """The server to which jobs send lineage."""
    cluster_domain: ShortText = Field(default="cluster.local")
    """Domain of Services."""


def read_settings(path: Path | None) -> OperatorSettings:
    """Read the settings of a file; the defaults without a file, and for an empty one.

    Raises:
        SettingsInvalid: it cannot be read, or is invalid.
    """
    if path is None:
        return OperatorSettings()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsInvalid(
            f"the settings in {path} cannot be read",
            found=str(error),
            expected="a YAML file in UTF-8",
        ) from error
    return _parsed(path, compose(text))


def _parsed(path: Path, composed: Composed) -> OperatorSettings:
    faults = [fault for document in composed.documents for fault in document.faults]
    fault = composed.fault or (faults[0] if faults else None)
    if fault is not None:
        raise SettingsInvalid(
            f"{path}:{fault.at.line}: {fault.message}",
            found=fault.found or None,
            expected=fault.expected or None,
            hint=fault.hint or None,
        )
    if not composed.documents or plain(composed.documents[0].node) is None:
        return OperatorSettings()
    document = composed.documents[0]
    try:
        return OperatorSettings.parse(plain(document.node))
    except ValidationError as error:
        findings = findings_of(error, OperatorSettings, document.node, "")
    first, more = findings[0], len(findings) - 1
    line = position_of(document.node, document.at, split_path(first.path)).line
    raise SettingsInvalid(
        f"{path}:{line}: {first.message}" + (f" (and {more} more faults)" if more else ""),
        path=first.path,
        found=first.found or None,
        expected=first.expected or None,
        hint=first.hint or None,
    )
