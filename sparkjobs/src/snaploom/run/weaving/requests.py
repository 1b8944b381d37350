"""Requests for runs and plans, beyond their declarations; without Spark."""

from collections.abc import Callable
from dataclasses import dataclass

from snaploom.errors import ArgumentInvalid
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.common import EpochNanos, format_instant
from snaploom.models.run import Accelerator
from snaploom.output.leaseholder import ClaimLease, OpenLease
from snaploom.plan.bundle import Bundle
from snaploom.plan.times import EVERYTHING, Selection
from snaploom.run.runevents import EmitEvent, Interruption

# Options of one run beyond its declarations; without Spark.

MOST_PARALLEL_SNAPSHOTS = 16
"""Snapshots of one output that may be woven at a time: each needs the memory of a weave, and beyond
some of them the driver, which plans them all, is what they wait for."""


@dataclass(frozen=True)
class RunOptions:
    """Restrictions of a run, which by default publishes everything that is due."""

    selection: Selection = EVERYTHING
    limit: int | None = None
    """Snapshots to publish at most, of each output."""
    keep_going: bool = False
    """Whether a snapshot that fails leaves the later ones their turn."""
    sample: float | None = None
    """Share of the root's rows to weave, chosen by a hash of `rootKey`; None for all."""
    parallel: int = 1
    """Number of outputs to weave at a time."""
    parallel_snapshots: int = 1
    """Number of snapshots of an output to weave at a time; they are published in their order."""
    is_strict: bool = False
    """Whether a root without any snapshot is a failure, also where `run.onEmptyRoot` differs."""
    reason: str = ""
    accelerator: Accelerator | None = None
    """Accelerator of Spark; None for that of the environment or the declarations."""
    allow: Allowances = NO_ALLOWANCES
    """Entries that declarations may use beyond the built-in lists."""


AS_DECLARED = RunOptions()
"""Everything that is due, until something fails."""


def span_of(first: EpochNanos, end: EpochNanos, option: str) -> Selection:
    """Select the snapshots of a span of time.

    Snapshot times are before `end`; `option` names the argument to blame.
    """
    if first >= end:
        raise ArgumentInvalid(
            "no time lies in this span",
            path=option,
            found=f"from {format_instant(first)} to {format_instant(end)}",
            expected="an end that is after the beginning",
            hint="give a later end, or an earlier beginning",
        )
    return Selection(first, end)


def refuse_unacknowledged(is_acknowledged: object, option: str) -> None:
    """Refuse to replace a published snapshot before its readers were thought of."""
    if is_acknowledged is not True:
        raise ArgumentInvalid(
            "a published snapshot is to be replaced",
            path=option,
            found="not given",
            expected=option,
            hint="readers that list folders instead of asking the manifest see both versions until "
            "readerGrace has passed and 'snaploom gc' has removed the old one; add "
            f"{option} if everybody knows",
        )


# Requests for plans and runs: data, handed on from the look without Spark to a session.


@dataclass(frozen=True)
class RunRequest:
    """Runs of outputs."""

    bundles: tuple[Bundle, ...]
    moment: EpochNanos
    emit: EmitEvent
    """Takes events, from any thread."""
    interruption: Interruption
    on_tick: Callable[[], None] = lambda: None
    """Called several times a second from the caller's thread."""
    options: RunOptions = AS_DECLARED
    lease: OpenLease = ClaimLease
    """Store of leases, by which runs of one folder see each other."""
