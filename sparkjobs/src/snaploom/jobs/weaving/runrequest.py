"""What a plan or a run is asked for: data, handed on from the look without Spark to a session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from snaploom.jobs.interruption import Interruption
from snaploom.jobs.runevents import EmitEvent
from snaploom.jobs.weaving.runoptions import RunOptions
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.times import EpochNanos
from snaploom.planning.bundle import Bundle
from snaploom.planning.selection import EVERYTHING, Selection
from snaploom.storage.leaseholder import OpenLease


@dataclass(frozen=True)
class PlanRequest:
    """The plan of one output."""

    bundle: Bundle
    """The output, and what it refers to."""
    moment: EpochNanos
    """The instant of planning."""
    limit: int | None = None
    """Snapshots to publish at most."""
    selection: Selection = EVERYTHING
    """Which snapshots are wanted."""
    allow: Allowances = NO_ALLOWANCES
    """What declarations may use beyond the built-in lists."""
    is_strict: bool = False
    """Whether a root without any snapshot is a failure in any case."""


@dataclass(frozen=True)
class RunRequest:
    """Runs of outputs."""

    bundles: tuple[Bundle, ...]
    """The outputs."""
    moment: EpochNanos
    """The instant of planning."""
    limit: int | None
    """Snapshots to publish at most, of each output."""
    emit: EmitEvent
    """Takes events, from any thread."""
    on_tick: Callable[[], None]
    """Called several times a second from the caller's thread."""
    interruption: Interruption
    """From `signal_handlers`."""
    options: RunOptions
    """What is asked beyond the declarations."""
    lease: OpenLease
    """Where runs of one folder learn of each other."""

    def plan_of(self, bundle: Bundle) -> PlanRequest:
        """The plan with which the run of one of the outputs begins."""
        options = self.options
        return PlanRequest(
            bundle, self.moment, self.limit, options.selection, options.allow, options.is_strict
        )
