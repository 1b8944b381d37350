"""Runs in flight, and what is decided about them."""

from __future__ import annotations

from typing import Any

from support.operator.observations import RUN, SETTINGS, an_output, current_of, observing

from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.run import CurrentPhase, CurrentRun
from snaploom_operator.decide.decide import decide
from snaploom_operator.decision import Decision, ObservedOutput
from snaploom_operator.objects import Application, DriverPod, FoundReport


def flying(
    run: CurrentRun,
    application: Application | None = None,
    report: FoundReport | None = None,
    pod: DriverPod | None = None,
    **settings: Any,
) -> ObservedOutput:
    """An output with a run in flight."""
    observed = an_output(OutputDatasetStatus(current_run=run), **settings)
    return observing(
        observed,
        applications=(application,) if application is not None else (),
        reports={report.run: report} if report is not None else {},
        driver_pods={RUN: pod} if pod is not None else {},
    )


def decided(observed: ObservedOutput) -> Decision:
    return decide(observed, SETTINGS)


def phase_of(observed: ObservedOutput) -> CurrentPhase | None:
    current = current_of(decided(observed))
    return current.phase if current is not None else None
