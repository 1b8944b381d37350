"""The port of submitters, and the request to submit a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.run import RunAction, SparkSettings, Submitter, Trigger
from snaploom.models.skippingindex import SkippingIndex
from snaploom.models.times import EpochNanos
from snaploom.planning.secretvariables import SecretKey
from snaploom_operator.cluster.port import ApiResource
from snaploom_operator.objects import Application, JsonObject
from snaploom_operator.operatorsettings import NO_LINEAGE, LineageSettings, LogFormat


@dataclass(frozen=True)
class RunRequest:
    """A run to submit."""

    owner: OutputDataset | SkippingIndex
    """The resource, as it is stored."""
    name: str
    """Name of the run and of its application."""
    action: RunAction
    attempt: int
    trigger: Trigger
    started_at: EpochNanos
    spark: SparkSettings
    """The resource's settings, merged over the operator's; complete."""
    bundle: str
    """Name of the ConfigMap with the Bundle."""
    report: str
    """Name of the ConfigMap that the job writes its Report to."""
    secrets: tuple[SecretKey, ...] = ()
    """Keys of Secrets that its driver gets as environment variables."""
    allow_jdbc_url: bool = False
    """Whether its driver may read databases by whole JDBC URLs."""
    allow: Allowances = NO_ALLOWANCES
    """What its declarations may use beyond the built-in lists."""
    log_format: LogFormat = "text"
    """Log format of its driver."""
    lineage: LineageSettings = NO_LINEAGE
    """Where its driver sends lineage."""


class ApplicationForm(Protocol):
    """Builds and parses the applications of one submitter."""

    @property
    def submitter(self) -> Submitter:
        """The submitter."""
        ...

    @property
    def resource(self) -> ApiResource:
        """Kind of its objects."""
        ...

    def manifest(self, request: RunRequest) -> JsonObject:
        """The object that runs the job, complete, so that no webhook changes it."""
        ...

    def read(self, stored: JsonObject) -> Application | None:
        """The run of an object; None if it is not ours."""
        ...
