"""The port of submitters, and what a run is when it is handed to one."""

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
from snaploom_operator.settings import NO_LINEAGE, LineageSettings, LogFormat


@dataclass(frozen=True)
class RunRequest:
    """One run, before it is an object."""

    owner: OutputDataset | SkippingIndex
    """The resource, as it is stored."""
    name: str
    """Name of the run and of its application."""
    action: RunAction
    attempt: int
    trigger: Trigger
    started_at: EpochNanos
    spark: SparkSettings
    """What the resource says, over what the operator's settings say; complete."""
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
    """Form of its driver's lines."""
    lineage: LineageSettings = NO_LINEAGE
    """Where its driver tells what it makes of what."""


class ApplicationForm(Protocol):
    """How one submitter writes a run down, and how what it says of it is read."""

    @property
    def submitter(self) -> Submitter:
        """Which one it is."""
        ...

    @property
    def resource(self) -> ApiResource:
        """Kind of its objects."""
        ...

    def manifest(self, request: RunRequest) -> JsonObject:
        """The object that runs the job: complete, so that no webhook has anything to add."""
        ...

    def read(self, stored: JsonObject) -> Application | None:
        """The run behind an object; None when it is not one of ours."""
        ...
