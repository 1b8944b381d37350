"""Circles of sources that read each other, which must not be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from snaploom.models.codes import make_finding
from snaploom.models.datasource import DataSource
from snaploom.models.finding import Finding
from snaploom.planning.commonchecks.fields import Findings
from snaploom.planning.reads import reads_of


def cycle_findings(sources: Mapping[str, DataSource]) -> Findings:
    """One finding for every circle of virtual sources (of intertwined ones, the shortest)."""
    reads = reads_of(sources)
    circles = (reads.circle(min(group)) for group in reads.circles)
    findings = (_finding(circle, sources) for circle in circles)
    return tuple(sorted(findings, key=lambda finding: finding.resource))


def _finding(circle: Sequence[str], sources: Mapping[str, DataSource]) -> Finding:
    owner = sources[circle[0]]
    return make_finding(
        "SL155",
        "virtual sources read each other in a circle",
        resource=owner.identity,
        path=f"spec.{DataSource.variant_of(owner.spec)}",
        found=" -> ".join(f"DataSource/{name}" for name in circle),
        expected="virtual sources that come from physical ones in the end",
        hint="let one of them read a physical source instead of the next one in the circle",
    )
