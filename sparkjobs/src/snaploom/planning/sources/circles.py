"""Circles of sources that read each other, which must not be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from snaploom.models.codes import make_finding
from snaploom.models.datasource import DataSource
from snaploom.models.finding import Finding
from snaploom.planning.commonchecks.fields import Findings
from snaploom.planning.cycles import cyclic_groups, shortest_cycle


def cycle_findings(sources: Mapping[str, DataSource]) -> Findings:
    """One finding for every circle of virtual sources (of intertwined ones, the shortest)."""
    reads = {name: source.spec.reads for name, source in sources.items()}
    circles = (shortest_cycle(reads, min(group)) for group in cyclic_groups(reads))
    findings = (_finding(circle, sources) for circle in circles)
    return tuple(sorted(findings, key=lambda finding: finding.resource))


def is_in_circle(owner: DataSource, sources: Mapping[str, DataSource]) -> bool:
    """Whether a source reads itself, directly or through others."""
    seen: set[str] = set()
    below = list(owner.spec.reads)
    while below:
        name = below.pop()
        if name == owner.name:
            return True
        if name in sources and name not in seen:
            seen.add(name)
            below.extend(sources[name].spec.reads)
    return False


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
