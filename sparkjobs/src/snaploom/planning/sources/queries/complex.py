"""`ComplexQuery`: queries over the latest snapshots of several sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from snaploom.models.codes import make_finding
from snaploom.models.datasource import ComplexVirtual, DataSource
from snaploom.models.finding import Finding
from snaploom.models.times import EpochNanos
from snaploom.planning.commonchecks.fields import Findings, duplicate_findings
from snaploom.planning.commonchecks.queries import (
    clause_findings,
    facts_or_findings,
    order_findings,
    table_findings,
)
from snaploom.planning.commonchecks.scope import Scope
from snaploom.planning.sources.declared import BoundQuery
from snaploom.planning.sources.queries.placeholders import (
    PLACEHOLDER,
    bound,
    is_placeholder,
    misplaced,
    placeholder_finding,
)
from snaploom.planning.sources.queries.query import QuerySource
from snaploom.planning.sqlgate.facts import SqlFacts, SqlForm

INTERVAL_COLUMNS = ("interval_start", "interval_end")
"""Columns that a snapshotQuery returns."""

_PATH = "spec.complexVirtual"


@dataclass(frozen=True)
class ComplexQuery(QuerySource):
    """A source that is a query over others, at any time of its intervals."""

    declared: ComplexVirtual

    @classmethod
    def of(cls, source: DataSource) -> Self | None:
        """The source, if it is such a query."""
        declared = source.spec.complex_virtual
        return None if declared is None else cls(source, declared)

    def findings(self, scope: Scope) -> Findings:
        """Everything that is wrong with it."""
        spec, owner = self.declared, self.source
        aliases = tuple(source.alias for source in spec.data_sources)
        missing = (
            finding
            for index, source in enumerate(spec.data_sources)
            for finding in scope.missing(
                "DataSource", source.data_source, owner, f"{_PATH}.dataSources[{index}].dataSource"
            )
        )
        return (
            *missing,
            *duplicate_findings(aliases, owner, f"{_PATH}.dataSources"),
            *_snapshot_query(spec, aliases, owner, f"{_PATH}.snapshotQuery", scope),
            *_data_query(spec, aliases, owner, f"{_PATH}.dataQuery", scope),
        )

    @property
    def caption(self) -> str:
        """How many sources it is over."""
        first, *more = self.declared.data_sources
        return f"query on {len(more) + 1} sources" if more else f"query on {first.data_source}"

    def query(self, snapshot: EpochNanos) -> BoundQuery:
        """Its dataQuery, with the time in place of placeholders."""
        sources = {each.alias: each.data_source for each in self.declared.data_sources}
        return BoundQuery(bound(self.declared.data_query, snapshot), sources)


def _snapshot_query(
    spec: ComplexVirtual, aliases: tuple[str, ...], owner: DataSource, path: str, scope: Scope
) -> Findings:
    placeholder = PLACEHOLDER.search(spec.snapshot_query)
    if placeholder is not None:
        return (
            placeholder_finding(
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
            placeholder_finding("dataQuery must contain the snapshot time", "", owner, path)
        )
    findings.extend(
        placeholder_finding("this is not a placeholder", placeholder[0], owner, path)
        for placeholder in placeholders
        if not is_placeholder(placeholder)
    )
    findings.extend(
        placeholder_finding(
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
