"""What whoever installs the operator decides: one YAML file, parsed once, frozen.

The chart writes it from its values, key by key; `snaploom operator run --settings` reads it. What
is omitted has the defaults below. The models are strict: an unknown key is an error, not ignored.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from annotated_types import Ge, Le, MaxLen
from pydantic import Field

from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.base import ApiModel
from snaploom.models.common import ResourceName, ShortText
from snaploom.models.run import (
    DriverSettings,
    ExecutorSettings,
    SparkSettings,
    Submitter,
)

Port = Annotated[int, Ge(0), Le(65535)]
LogFormat = Literal["json", "text"]
ServerUrl = Annotated[str, Field(max_length=2048, pattern=r"^(https?://[^\s@?#/]+(/[^\s?#]*)?)?$")]
"""An address without user, password and query; or nothing."""


class ProtectDependants(StrEnum):
    """What admission does with a change that breaks others (ruling D13)."""

    WARN = "Warn"
    """It is let through, with the list of dependants; these stall."""
    DENY = "Deny"
    """It is refused."""


class Limits(ApiModel):
    """Runs in flight."""

    runs: Annotated[int, Ge(1), Le(10_000)] = 50
    """In all; spark-operator manages some 130 submissions a minute (`operator.md` section 4)."""
    runs_per_namespace: Annotated[int, Ge(1), Le(10_000)] = 20
    """In one namespace."""


class AdmissionSettings(ApiModel):
    """The webhook."""

    port: Port = 9443
    """Where it listens; 0 for any free port."""
    protect_dependants: ProtectDependants = ProtectDependants.WARN
    """What it does with a change that breaks others."""
    certificate_folder: ShortText = "/etc/snaploom/certificates"
    """Where `tls.crt` and `tls.key` are; they are read again when they change."""
    is_certificate_rotated: bool = True
    """Whether the controller renews the webhook's certificate in its Secret (not with
    cert-manager)."""
    certificate_secret: ResourceName = "snaploom-webhook"
    """The Secret."""
    service: ResourceName = "snaploom-webhook"
    """The Service in front of it, whose name the certificate bears."""
    configuration: ResourceName = "snaploom"
    """The ValidatingWebhookConfiguration whose `caBundle` is kept up to date."""
    passed_users: Annotated[tuple[ShortText, ...], MaxLen(16)] = ()
    """Names of users whose writes pass unread: the controller's own account."""
    view_age_limit_seconds: Annotated[int, Ge(60), Le(86_400)] = 900
    """How old what the webhook knows may become before it says that it is not ready; a watch
    that works is heard of every minute."""


class ApiKey(ApiModel):
    """A key in a Secret, which has to be in each namespace with jobs."""

    secret: ResourceName
    """Name of the Secret."""
    key: ShortText = "apiKey"
    """Key of it."""


class LineageSettings(ApiModel):
    """Where jobs tell what they make of what, as events of OpenLineage."""

    url: ServerUrl = ""
    """Address of the server; empty for none. Events go to `/api/v1/lineage`, unless it has a
    path."""
    namespace: ShortText = "snaploom"
    """Namespace of our jobs there."""
    api_key: ApiKey | None = None
    """The key that the server wants; drivers get it as an environment variable."""


NO_LINEAGE = LineageSettings()
"""Jobs tell nobody."""


class OperatorSettings(ApiModel):
    """All of it."""

    namespace: ResourceName = "snaploom-system"
    """Where the operator itself lives."""
    lease: ResourceName = "snaploom-operator"
    """Name of the Lease there, which the one of its processes holds that works. Every further
    operator of the namespace has another one."""
    watch_namespaces: Annotated[tuple[ResourceName, ...], MaxLen(1000)] = ()
    """Namespaces to look after; empty for all."""
    submitters: Annotated[tuple[Submitter, ...], MaxLen(3)] = (Submitter.SPARK_OPERATOR,)
    """Who may start jobs; `Local` is honoured only with `--local` (ruling D45)."""
    spark: SparkSettings = SparkSettings(
        image="snaploom-spark:latest",
        spark_version="4.3.0",
        service_account_name="snaploom-spark",
        driver=DriverSettings(cores=1, memory="2g"),
        executor=ExecutorSettings(instances=2, cores=1, memory="2g"),
    )
    """Spark applications, where a resource says nothing."""
    limits: Limits = Limits()
    """Runs in flight."""
    admission: AdmissionSettings = AdmissionSettings()
    """The webhook."""
    workers: Annotated[int, Ge(1), Le(256)] = 8
    """Resources that are reconciled at once."""
    resync_seconds: Annotated[int, Ge(10), Le(86_400)] = 600
    """How often everything is listed and looked at again, whatever the watches say."""
    health_port: Port = 8080
    """Where `/healthz` and `/readyz` answer; 0 for any free port."""
    metrics_port: Port = 9090
    """Where `/metrics` answers; 0 for any free port."""
    log_format: LogFormat = "json"
    """Form of log lines, of drivers too."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """What is logged."""
    allow_jdbc_url: bool = False
    """Whether sources may give a whole JDBC `url`. Its options can make a driver run code in the
    job's pods, so that whoever may write sources may then do that."""
    allow: Allowances = NO_ALLOWANCES
    """What declarations may use beyond the built-in lists."""
    lineage: LineageSettings = NO_LINEAGE
    """Where jobs tell what they make of what."""
    cluster_domain: ShortText = Field(default="cluster.local")
    """Domain of Services."""
