"""Circles of sources that read each other, which must not be."""

from __future__ import annotations

from collections.abc import Mapping

import networkx as nx

from snaploom.models.codes import make_finding
from snaploom.models.datasource import DataSource
from snaploom.models.finding import Finding
from snaploom.planning.validation.fields import Findings


def cycle_findings(sources: Mapping[str, DataSource]) -> Findings:
    """One finding for every circle of virtual sources (of intertwined ones, the first found)."""
    reads: nx.DiGraph[str] = nx.DiGraph()
    for name in sorted(sources):
        reads.add_edges_from((name, read) for read in sources[name].spec.reads)
    findings: list[Finding] = []
    for component in nx.strongly_connected_components(reads):
        first = min(component)
        if len(component) > 1 or reads.has_edge(first, first):
            findings.append(_cycle(reads.subgraph(component), first, sources))
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


def _cycle(reads: nx.DiGraph[str], first: str, sources: Mapping[str, DataSource]) -> Finding:
    names = [edge[0] for edge in nx.find_cycle(reads, first)]
    start = names.index(min(names))
    circle = [*names[start:], *names[:start]]
    owner = sources[circle[0]]
    return make_finding(
        "SL155",
        "virtual sources read each other in a circle",
        resource=owner.identity,
        path=f"spec.{DataSource.variant_of(owner.spec)}",
        found=" -> ".join(f"DataSource/{name}" for name in [*circle, circle[0]]),
        expected="virtual sources that come from physical ones in the end",
        hint="let one of them read a physical source instead of the next one in the circle",
    )
