"""`SimpleQuery`: a query over each snapshot of one physical source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from snaploom.models.codes import make_finding
from snaploom.models.datasource import DataSource, SimpleVirtual
from snaploom.models.finding import Finding
from snaploom.models.times import EpochNanos
from snaploom.planning.commonchecks.columns import undeclared_column
from snaploom.planning.commonchecks.fields import Findings
from snaploom.planning.commonchecks.queries import (
    clause_findings,
    facts_or_findings,
    order_findings,
    table_findings,
)
from snaploom.planning.commonchecks.scope import Scope
from snaploom.planning.sources.declared import BoundQuery
from snaploom.planning.sources.queries.placeholders import PLACEHOLDER, placeholder_finding
from snaploom.planning.sources.queries.query import QuerySource
from snaploom.planning.sqlgate.facts import SqlFacts, SqlForm
from snaploom.planning.sqlgate.nondeterminism import WORDS

_PATH = "spec.simpleVirtual"


@dataclass(frozen=True)
class SimpleQuery(QuerySource):
    """A source that is a query over another."""

    declared: SimpleVirtual

    @classmethod
    def of(cls, source: DataSource) -> Self | None:
        """The source, if it is such a query."""
        declared = source.spec.simple_virtual
        return None if declared is None else cls(source, declared)

    def findings(self, scope: Scope) -> Findings:
        """Everything that is wrong with it."""
        spec, owner = self.declared, self.source
        return (
            *scope.missing("DataSource", spec.data_source, owner, f"{_PATH}.dataSource"),
            *_over_virtual(scope.sources.get(spec.data_source), owner, scope),
            *_simple_query(spec, owner, f"{_PATH}.dataQuery", scope),
        )

    @property
    def caption(self) -> str:
        """The source it queries."""
        return f"query on {self.declared.data_source}"

    @property
    def snapshots_of(self) -> str:
        """The source that it is over."""
        return self.declared.data_source

    def query(self, snapshot: EpochNanos) -> BoundQuery:
        """The query, which is the same at every snapshot."""
        declared = self.declared
        return BoundQuery(declared.data_query, {declared.alias: declared.data_source})


def _over_virtual(source: DataSource | None, owner: DataSource, scope: Scope) -> Findings:
    """A source in a circle as well gets only that finding, which is more severe."""
    if source is None or not source.spec.reads or scope.reads.circle(owner.name):
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
            placeholder_finding(
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
        *(() if beyond else _undeclared_columns(spec, facts, owner, path, scope)),
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


def _undeclared_columns(
    spec: SimpleVirtual, facts: SqlFacts, owner: DataSource, path: str, scope: Scope
) -> Iterator[Finding]:
    source, columns = scope.sources.get(spec.data_source), scope.columns_of(spec.data_source)
    if source is None or columns is None:
        return
    own = {*(name.casefold() for name in facts.aliases), *WORDS, "user"}
    for name in facts.columns:
        parts = name.split(".")
        if len(parts) > 1 and parts[0].casefold() == spec.alias.casefold():
            del parts[0]
        if parts[0].casefold() not in own and columns.missing_part(parts) is not None:
            yield undeclared_column(source, columns, ".".join(parts), owner, path, scope)
