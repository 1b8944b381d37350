"""The port of submitters, and the request to submit a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from snaploom.models.outputdataset import OutputDataset
from snaploom.models.run import CurrentRun, SparkSettings, Submitter
from snaploom.models.skippingindex import SkippingIndex
from snaploom.models.times import EpochNanos
from snaploom.planning.secretvariables import SecretKey
from snaploom_operator.cluster.port import ApiResource
from snaploom_operator.objects import Application, JsonObject
from snaploom_operator.operatorsettings import OperatorSettings


@dataclass(frozen=True)
class RunRequest:
    """A run to submit."""

    owner: OutputDataset | SkippingIndex
    """The resource, as it is stored."""
    run: CurrentRun
    """The run; its application has its name."""
    started_at: EpochNanos
    spark: SparkSettings
    """The resource's settings, merged over the operator's; complete."""
    bundle: str
    """Name of the ConfigMap with the Bundle."""
    settings: OperatorSettings
    """The operator's settings."""
    secrets: tuple[SecretKey, ...] = ()
    """Keys of Secrets that its driver gets as environment variables."""


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
