"""Simple and complex queries as declared, and the placeholders of snapshots in them."""

import re
from abc import ABC
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from snaploom.models.common import NANOS_PER_MILLISECOND, NANOS_PER_SECOND, EpochNanos
from snaploom.models.datasource import ComplexVirtual, DataSource, SimpleVirtual
from snaploom.models.findings import Finding, make_finding
from snaploom.policy import fields
from snaploom.policy.fields import Findings, duplicate_findings
from snaploom.policy.references import Scope, undeclared_column
from snaploom.policy.sqlfunctions import WORDS
from snaploom.policy.sqltext import SqlFacts, SqlForm, SqlRefused, TokenKind, scan
from snaploom.sources.declared import BoundQuery, DeclaredSource, NoSnapshots

# The part shared by both kinds of queries.


@dataclass(frozen=True)
class QuerySource(DeclaredSource, ABC):
    """A source that reads other sources, and nothing else."""

    @property
    def no_snapshots(self) -> NoSnapshots:
        """The sources that it reads."""
        read = ", ".join(f"DataSource/{name}" for name in self.source.spec.reads)
        return NoSnapshots(self.field, "no snapshot", f"check what {read} has")


# `{{ SNAPSHOT | FORMAT }}` in queries: where it may stand, and the number that takes its place.

PLACEHOLDER = re.compile(r"\{\{(?P<inside>[^{}]*+)\}\}")
"""Anything in the form of a placeholder. It holds no braces, so that the search is linear; the scan
refuses those that are left."""

_UNITS = {"UNIX_SECONDS": NANOS_PER_SECOND, "UNIX_MILLISECONDS": NANOS_PER_MILLISECOND}
PLACEHOLDER_FORMATS = tuple(_UNITS)
"""Formats in which the snapshot time can be asked for."""

_INSIDE = re.compile(r"\s*SNAPSHOT\s*\|\s*(?P<format>[A-Za-z0-9_]+)\s*")


def is_placeholder(match: re.Match[str]) -> bool:
    """Whether a text in the form of a placeholder names a known format."""
    inside = _INSIDE.fullmatch(match["inside"])
    return inside is not None and inside["format"] in _UNITS


def misplaced(query: str) -> tuple[str, ...]:
    """Placeholders of a query that do not stand by themselves; empty where it cannot be read."""
    # A word of the same length stands for each: so nothing grows, and places stay the same.
    text = PLACEHOLDER.sub(lambda match: "z" * len(match[0]), query)
    try:
        read = scan(text).tokens
    except SqlRefused:
        return ()
    words = {(token.start, token.end) for token in read if token.kind is TokenKind.WORD}
    return tuple(m[0] for m in PLACEHOLDER.finditer(query) if m.span() not in words)


def bound(query: str, snapshot: EpochNanos) -> str:
    """The query with a snapshot time in place of its placeholders, all of which are valid."""

    def literal(match: re.Match[str]) -> str:
        inside = _INSIDE.fullmatch(match["inside"])
        assert inside is not None  # validation refuses the others
        return f"({snapshot // _UNITS[inside['format']]}L)"

    return PLACEHOLDER.sub(literal, query)


def placeholder_finding(
    message: str, found: str, owner: DataSource, path: str, hint: str = ""
) -> Finding:
    """The finding about a placeholder that is missing, or stands where none may."""
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


# `SimpleQuery`: a query over each snapshot of one physical source.

_PATH = "spec.simpleVirtual"


@dataclass(frozen=True)
class SimpleQuery(QuerySource):
    """A source that is a query over another."""

    declared: SimpleVirtual

    @classmethod
    def of(cls, source: DataSource) -> Self | None:
        declared = source.spec.simple_virtual
        return None if declared is None else cls(source, declared)

    def findings(self, scope: Scope) -> Findings:
        spec, owner = self.declared, self.source
        return (
            *scope.missing("DataSource", spec.data_source, owner, f"{_PATH}.dataSource"),
            *_over_virtual(scope.sources.get(spec.data_source), owner, scope),
            *_simple_query(spec, owner, f"{_PATH}.dataQuery", scope),
        )

    @property
    def caption(self) -> str:
        return f"query on {self.declared.data_source}"

    @property
    def snapshots_of(self) -> str:
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
    facts, findings = fields.facts_or_findings(spec.data_query, SqlForm.QUERY, owner, path, scope)
    if facts is None:
        return findings
    beyond = (*facts.beyond_simple, *facts.beyond_query)
    return (
        *fields.clause_findings(
            beyond, f"SELECT, WHERE and GROUP BY over {spec.alias}", owner, path,
            hint="" if facts.beyond_query else "use complexVirtual, over one source or several",
        ),
        *findings,
        *fields.order_findings(facts, owner, path),
        *fields.table_findings(facts, [spec.alias], owner, path),
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


# `ComplexQuery`: queries over the latest snapshots of several sources.

INTERVAL_COLUMNS = ("interval_start", "interval_end")
"""Columns that a snapshotQuery returns."""

_COMPLEX_PATH = "spec.complexVirtual"


@dataclass(frozen=True)
class ComplexQuery(QuerySource):
    """A source that is a query over others, at any time of its intervals."""

    declared: ComplexVirtual

    @classmethod
    def of(cls, source: DataSource) -> Self | None:
        declared = source.spec.complex_virtual
        return None if declared is None else cls(source, declared)

    def findings(self, scope: Scope) -> Findings:
        spec, owner = self.declared, self.source
        aliases = tuple(source.alias for source in spec.data_sources)
        missing = (
            finding
            for index, source in enumerate(spec.data_sources)
            for finding in scope.missing(
                "DataSource",
                source.data_source,
                owner,
                f"{_COMPLEX_PATH}.dataSources[{index}].dataSource",
            )
        )
        return (
            *missing,
            *duplicate_findings(aliases, owner, f"{_COMPLEX_PATH}.dataSources"),
            *_snapshot_query(spec, aliases, owner, f"{_COMPLEX_PATH}.snapshotQuery", scope),
            *_data_query(spec, aliases, owner, f"{_COMPLEX_PATH}.dataQuery", scope),
        )

    @property
    def caption(self) -> str:
        first, *more = self.declared.data_sources
        return f"query on {len(more) + 1} sources" if more else f"query on {first.data_source}"

    @property
    def no_history(self) -> str:
        """It has no list of snapshots."""
        return "it has a snapshot at any time: give the length to its dataQuery"

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
    facts, findings = fields.facts_or_findings(text, SqlForm.QUERY, owner, path, scope)
    if facts is None:
        return None, findings
    if not facts.is_query:
        return facts, fields.clause_findings([facts.statement], "a SELECT", owner, path)
    return facts, (
        *fields.clause_findings(facts.beyond_query, "SELECT over the aliases", owner, path),
        *findings,
        *fields.order_findings(facts, owner, path),
        *fields.table_findings(facts, aliases, owner, path),
    )
