"""Virtual sources: what their queries read and use, and the circles that they must not form."""

from __future__ import annotations

import networkx as nx

from snaploom.models.codes import make_finding
from snaploom.models.datasource import ComplexVirtual, DataSource, SimpleVirtual
from snaploom.models.finding import Finding
from snaploom.planning.sqlgate.facts import SqlFacts, SqlForm
from snaploom.planning.validation.columns import query_column_findings
from snaploom.planning.validation.fields import Findings, duplicate_findings
from snaploom.planning.validation.placeholders import (
    PLACEHOLDER,
    PLACEHOLDER_FORMATS,
    is_placeholder,
    misplaced,
)
from snaploom.planning.validation.queries import (
    clause_findings,
    facts_or_findings,
    order_findings,
    table_findings,
)
from snaploom.planning.validation.scope import Scope

INTERVAL_COLUMNS = ("interval_start", "interval_end")
"""Columns that a snapshotQuery returns."""


def simple_findings(spec: SimpleVirtual, owner: DataSource, scope: Scope) -> Findings:
    """Everything that is wrong with a simpleVirtual source."""
    path = "spec.simpleVirtual"
    source = scope.sources.get(spec.data_source)
    return (
        *scope.missing("DataSource", spec.data_source, owner, f"{path}.dataSource"),
        *_over_virtual(source, owner, scope),
        *_simple_query(spec, owner, f"{path}.dataQuery", scope),
    )


def _over_virtual(source: DataSource | None, owner: DataSource, scope: Scope) -> Findings:
    """A source in a circle as well gets only that finding, which is more severe."""
    if source is None or not source.spec.reads or _is_in_circle(owner, scope):
        return ()
    return (
        make_finding(
            "SL154",
            "a simpleVirtual source may not read another virtual source",
            resource=owner.identity,
            path="spec.simpleVirtual.dataSource",
            found=f"{source.identity}, which is {DataSource.variant_of(source.spec)}",
            expected="an hdfsLike or jdbc source",
            hint=f"read {source.spec.reads[0]} directly, or use complexVirtual",
        ),
    )


def _simple_query(spec: SimpleVirtual, owner: DataSource, path: str, scope: Scope) -> Findings:
    placeholder = PLACEHOLDER.search(spec.data_query)
    if placeholder is not None:
        return (
            _placeholder_finding(
                "simpleVirtual has no placeholders: it is evaluated at each snapshot of its source",
                placeholder[0], owner, path,
                hint="remove it, or use complexVirtual with a snapshotQuery",
            ),
        )  # fmt: skip
    facts, findings = facts_or_findings(spec.data_query, SqlForm.QUERY, owner, path, scope)
    if facts is None:
        return findings
    beyond = (*facts.beyond_simple, *facts.beyond_query)
    return (
        *clause_findings(
            beyond, f"SELECT, WHERE and GROUP BY over {spec.alias}", owner, path,
            hint="" if facts.beyond_query else "use complexVirtual, over one source or several",
        ),
        *findings,
        *order_findings(facts, owner, path),
        *table_findings(facts, [spec.alias], owner, path),
        *(() if beyond else _reads_nothing(facts, spec, owner, path)),
        *(() if beyond else query_column_findings(spec, facts, owner, path, scope)),
    )  # fmt: skip


def _reads_nothing(facts: SqlFacts, spec: SimpleVirtual, owner: DataSource, path: str) -> Findings:
    if facts.has_source:
        return ()
    return (
        make_finding(
            "SL152",
            "the query does not read its source",
            resource=owner.identity,
            path=path,
            found="no FROM",
            expected=f"FROM {spec.alias}",
            hint=f"read the source by its alias: SELECT ... FROM {spec.alias}",
        ),
    )


def complex_findings(spec: ComplexVirtual, owner: DataSource, scope: Scope) -> Findings:
    """Everything that is wrong with a complexVirtual source."""
    path = "spec.complexVirtual"
    aliases = tuple(source.alias for source in spec.data_sources)
    missing = (
        finding
        for index, source in enumerate(spec.data_sources)
        for finding in scope.missing(
            "DataSource", source.data_source, owner, f"{path}.dataSources[{index}].dataSource"
        )
    )
    return (
        *missing,
        *duplicate_findings(aliases, owner, f"{path}.dataSources"),
        *_snapshot_query(spec, aliases, owner, f"{path}.snapshotQuery", scope),
        *_data_query(spec, aliases, owner, f"{path}.dataQuery", scope),
    )


def _snapshot_query(
    spec: ComplexVirtual, aliases: tuple[str, ...], owner: DataSource, path: str, scope: Scope
) -> Findings:
    placeholder = PLACEHOLDER.search(spec.snapshot_query)
    if placeholder is not None:
        return (
            _placeholder_finding(
                "snapshotQuery lists the snapshots, so it cannot have a placeholder",
                placeholder[0], owner, path, hint="use it in dataQuery only",
            ),
        )  # fmt: skip
    facts, findings = _query(spec.snapshot_query, aliases, owner, path, scope)
    if facts is None or facts.selects is None:
        return findings
    names = tuple(name.casefold() for name in facts.selects)
    if sorted(names) == sorted(INTERVAL_COLUMNS):
        return findings
    wrong = make_finding(
        "SL151",
        "snapshotQuery must return exactly interval_start and interval_end",
        resource=owner.identity,
        path=path,
        found=", ".join(names),
        expected=", ".join(INTERVAL_COLUMNS),
        hint="name the columns with AS",
    )
    return (*findings, wrong)


def _data_query(
    spec: ComplexVirtual, aliases: tuple[str, ...], owner: DataSource, path: str, scope: Scope
) -> Findings:
    placeholders = list(PLACEHOLDER.finditer(spec.data_query))
    findings: list[Finding] = []
    if not placeholders:
        findings.append(
            _placeholder_finding("dataQuery must contain the snapshot time", "", owner, path)
        )
    findings.extend(
        _placeholder_finding("this is not a placeholder", placeholder[0], owner, path)
        for placeholder in placeholders
        if not is_placeholder(placeholder)
    )
    findings.extend(
        _placeholder_finding(
            "a placeholder is a number by itself: it may not stand in text, in a quoted name, in a "
            "comment, or at the end of a word",
            found, owner, path,
            hint="compare numbers, or make text of it: `string({{ SNAPSHOT | UNIX_SECONDS }})`",
        )
        for found in misplaced(spec.data_query)
    )  # fmt: skip
    text = PLACEHOLDER.sub("(0L)", spec.data_query)
    return (*findings, *_query(text, aliases, owner, path, scope)[1])


def _query(
    text: str, aliases: tuple[str, ...], owner: DataSource, path: str, scope: Scope
) -> tuple[SqlFacts | None, Findings]:
    facts, findings = facts_or_findings(text, SqlForm.QUERY, owner, path, scope)
    if facts is None:
        return None, findings
    if not facts.is_query:
        return facts, clause_findings([facts.statement], "a SELECT", owner, path)
    return facts, (
        *clause_findings(facts.beyond_query, "SELECT over the aliases", owner, path),
        *findings,
        *order_findings(facts, owner, path),
        *table_findings(facts, aliases, owner, path),
    )


def _placeholder_finding(
    message: str, found: str, owner: DataSource, path: str, hint: str = ""
) -> Finding:
    forms = " or ".join(f"{{{{ SNAPSHOT | {name} }}}}" for name in PLACEHOLDER_FORMATS)
    return make_finding(
        "SL153",
        message,
        resource=owner.identity,
        path=path,
        found=found or "no placeholder",
        expected="" if hint else forms,
        hint=hint,
    )


def cycle_findings(scope: Scope) -> Findings:
    """One finding for every circle of virtual sources (of intertwined ones, the first found)."""
    reads: nx.DiGraph[str] = nx.DiGraph()
    for name in sorted(scope.sources):
        reads.add_edges_from((name, read) for read in scope.sources[name].spec.reads)
    findings: list[Finding] = []
    for component in nx.strongly_connected_components(reads):
        first = min(component)
        if len(component) > 1 or reads.has_edge(first, first):
            findings.append(_cycle(reads.subgraph(component), first, scope))
    return tuple(sorted(findings, key=lambda finding: finding.resource))


def _is_in_circle(owner: DataSource, scope: Scope) -> bool:
    seen: set[str] = set()
    below = list(owner.spec.reads)
    while below:
        name = below.pop()
        if name == owner.name:
            return True
        if name in scope.sources and name not in seen:
            seen.add(name)
            below.extend(scope.sources[name].spec.reads)
    return False


def _cycle(reads: nx.DiGraph[str], first: str, scope: Scope) -> Finding:
    names = [edge[0] for edge in nx.find_cycle(reads, first)]
    start = names.index(min(names))
    circle = [*names[start:], *names[:start]]
    owner = scope.sources[circle[0]]
    return make_finding(
        "SL155",
        "virtual sources read each other in a circle",
        resource=owner.identity,
        path=f"spec.{DataSource.variant_of(owner.spec)}",
        found=" -> ".join(f"DataSource/{name}" for name in [*circle, circle[0]]),
        expected="virtual sources that come from physical ones in the end",
        hint="let one of them read a physical source instead of the next one in the circle",
    )
