"""Requests for plans and runs: data, handed on from the look without Spark to a session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from snaploom.jobs.interruption import Interruption
from snaploom.jobs.runevents import EmitEvent
from snaploom.jobs.weaving.runoptions import AS_DECLARED, RunOptions
from snaploom.models.times import EpochNanos
from snaploom.planning.bundle import Bundle
from snaploom.storage.claims import ClaimLease
from snaploom.storage.leaseholder import OpenLease


@dataclass(frozen=True)
class PlanRequest:
    """The plan of one output."""

    bundle: Bundle
    """The output, and what it refers to."""
    moment: EpochNanos
    """The instant of planning."""
    options: RunOptions = AS_DECLARED
    """Deviations of the run from its declarations."""


@dataclass(frozen=True)
class RunRequest:
    """Runs of outputs."""

    bundles: tuple[Bundle, ...]
    """The outputs."""
    moment: EpochNanos
    """The instant of planning."""
    emit: EmitEvent
    """Takes events, from any thread."""
    interruption: Interruption
    """From `signal_handlers`."""
    on_tick: Callable[[], None] = lambda: None
    """Called several times a second from the caller's thread."""
    options: RunOptions = AS_DECLARED
    """Deviations of the runs from their declarations."""
    lease: OpenLease = ClaimLease
    """Where runs of one folder learn of each other."""
