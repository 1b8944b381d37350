"""The inputs of a run's decision, for any kind with runs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

from snaploom.models.common import Condition
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.run import CurrentPhase, CurrentRun, LastRun, RunSettings, Submitter, Trigger
from snaploom.models.skippingindex import RefreshTrigger, SkippingIndex
from snaploom.models.times import EpochNanos, format_instant
from snaploom.planning.bundle import Bundle
from snaploom_operator.decide.decisionsettings import DecideSettings
from snaploom_operator.decide.faults import Fault
from snaploom_operator.decide.ticks import NO_TICKS, Ticks, ticks
from snaploom_operator.objects import ANNOTATION_RUN, FINALIZER, Application, is_pause
from snaploom_operator.observed import ObservedRuns, Refusal

UNSUBMITTED = (CurrentPhase.QUEUED, CurrentPhase.SUBMITTING)
"""Phases of a run of which no application was observed."""
_LONGEST_TOKEN = 64
"""Characters of the annotation that a status records; longer ones are hashed."""


@dataclass(frozen=True)
class RunView:
    """One runnable resource."""

    now: EpochNanos
    owner: OutputDataset | SkippingIndex
    runs: ObservedRuns
    bundle: Bundle | None
    declarations: str
    upstream: str
    """Hash of the publications that start its runs."""
    unpublished: tuple[str, ...]
    """Upstream outputs that have not published yet; the first run waits for them."""
    refusal: Refusal | None
    defaults: DecideSettings
    """The operator's settings."""
    fault: Fault | None
    """The cause that keeps runs from starting."""

    @property
    def settings(self) -> RunSettings:
        """Settings of its runs."""
        return self.owner.spec.run

    @property
    def submitter(self) -> Submitter:
        """The submitter of its jobs."""
        return self.settings.submitter or self.defaults.submitter

    @property
    def namespace(self) -> str:
        """Namespace of the resource."""
        return self.owner.metadata.namespace or ""

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions as observed."""
        return self.owner.status.conditions if self.owner.status is not None else ()

    @property
    def uid(self) -> str:
        """UID of the resource."""
        return self.owner.metadata.uid or ""

    @property
    def current(self) -> CurrentRun | None:
        """The recorded run in flight."""
        return self.owner.status.current_run if self.owner.status is not None else None

    @property
    def last(self) -> LastRun | None:
        """The recorded last run."""
        return self.owner.status.last_run if self.owner.status is not None else None

    @property
    def realised(self) -> str:
        """Hash of the declarations of the last successful run; empty without one."""
        status = self.owner.status
        return (status.realised or "") if status is not None else ""

    @property
    def is_realised(self) -> bool:
        """True if a run of the current declarations succeeded."""
        return bool(self.declarations) and self.realised == self.declarations

    @property
    def is_paused(self) -> bool:
        """True if the pause annotation is set."""
        return is_pause(self.owner.metadata.annotations)

    @property
    def is_deleting(self) -> bool:
        """True if the resource is being deleted."""
        return self.owner.metadata.deletion_timestamp is not None

    @property
    def has_finalizer(self) -> bool:
        """True if the resource has our finalizer."""
        return FINALIZER in self.owner.metadata.finalizers

    @property
    def token(self) -> str:
        """Value of the annotation that requests a run, or its hash; empty without one."""
        text = self.owner.metadata.annotations.get(ANNOTATION_RUN, "")
        if len(text) <= _LONGEST_TOKEN:
            return text
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    @cached_property
    def ticks(self) -> Ticks:
        """The ticks around now; none where they start no runs."""
        index = self.owner if isinstance(self.owner, SkippingIndex) else None
        if index is not None and index.spec.refresh.trigger is not RefreshTrigger.SCHEDULE:
            return NO_TICKS
        return ticks(self.settings.schedule, self.now)

    @property
    def trigger(self) -> Trigger:
        """The trigger of a run that is decided now."""
        latest = self.ticks.latest
        return Trigger(
            declarations=self.declarations,
            upstream=self.upstream,
            token=self.token,
            scheduled=format_instant(latest) if latest is not None else None,
        )

    def application(self, run: str) -> Application | None:
        """The application of a run; None when there is none."""
        return next((each for each in self.runs.applications if each.name == run), None)

    @property
    def taken(self) -> frozenset[str]:
        """Names of runs with objects in the cluster."""
        return frozenset(
            (
                *(application.name for application in self.runs.applications),
                *(config_map.run for config_map in self.runs.config_maps),
                *self.runs.reports,
            )
        )

    @property
    def job_bundle(self) -> Bundle | None:
        """The Bundle of a deleting run: the declarations, or those that are left.

        The sources may have been deleted together with the output; its own spec has the folder.
        """
        if self.bundle is not None:
            return self.bundle
        owner = self.owner.model_copy(update={"status": None})
        if isinstance(owner, OutputDataset):
            return Bundle(output_dataset=owner)
        target = owner.spec.target
        if target.data_source is None and target.output_dataset is None:
            return Bundle(skipping_index=owner)
        return None
