"""What declarations alone tell of one resource: findings, bundle, plan and hash; pure.

It sees the resource and what that refers to, never its whole namespace, so that the work does not
grow with the number of resources.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.datasource import DataSource
from snaploom.models.finding import Finding, Severity, errors_of
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.resource import Resource
from snaploom.models.skippingindex import SkippingIndex
from snaploom.planning.bundle import Bundle
from snaploom.planning.bundling import bundle_for
from snaploom.planning.dependence import dependence_findings
from snaploom.planning.plan import RunPlan, plan_offline
from snaploom.planning.sqlgate.facts import SqlJudge
from snaploom.planning.validation.overlaps import overlap_findings
from snaploom.planning.validation.validator import validate
from snaploom_operator.knowledge.entries import Entry
from snaploom_operator.knowledge.parsing import Refused
from snaploom_operator.objects import Ref
from snaploom_operator.observing.clusterrules import cluster_findings
from snaploom_operator.observing.declarations import declarations_hash

Basis = tuple[tuple[Ref, str, int], ...]
"""Key, UID and generation of everything that a judgement is made from."""


@dataclass(frozen=True)
class Checked:
    """What declarations alone tell."""

    findings: tuple[Finding, ...]
    """About the resource itself."""
    faulty: tuple[str, ...]
    """`Kind/name` of what it needs and what is wrong."""
    bundle: Bundle | None = None
    """None unless it can be run, and all that it needs is there and right."""
    plan: RunPlan | None = None
    """Of an output with a bundle."""
    declarations: str = ""
    """Hash; empty without a bundle."""


@dataclass(frozen=True)
class Surroundings:
    """One resource with all declarations that say something about it."""

    resource: Resource
    closure: tuple[Entry, ...]
    """It and everything that it refers to, directly or not."""
    neighbours: tuple[OutputDataset, ...] = ()
    """Outputs whose folder may overlap with its own."""
    upstream: tuple[OutputDataset, ...] = ()
    """Outputs whose files it may read, directly or through others; itself where it is a circle."""
    upstream_sources: tuple[DataSource, ...] = ()
    """The sources of these."""

    @property
    def basis(self) -> Basis:
        """Equal while what `check` says is the same."""
        others = (*self.neighbours, *self.upstream, *self.upstream_sources)
        return (
            *((entry.ref, entry.uid, entry.generation) for entry in self.closure),
            *map(_told, others),
        )


def own_findings(
    around: Surroundings,
    *,
    judge_sql: SqlJudge,
    allow_jdbc_url: bool = False,
    allow: Allowances = NO_ALLOWANCES,
) -> tuple[Finding, ...]:
    """What is wrong or doubtful about one resource.

    Args:
        around: it, with all that says something about it.
        judge_sql: gives the facts of texts of SQL.
        allow_jdbc_url: whether the operator's settings allow whole JDBC URLs.
        allow: what declarations may use beyond the built-in lists.
    """
    contents = [entry.content for entry in around.closure]
    known = [content for content in contents if isinstance(content, Resource)]
    refused = frozenset(identity_of(c.ref) for c in contents if isinstance(c, Refused))
    resource, about = around.resource, {around.resource.identity}
    found = [
        *validate(
            known,
            broken=refused,
            missing_reference=Severity.ERROR,
            about=about,
            allow=allow,
            judge_sql=judge_sql,
        ),
        *_beyond_references(around),
    ]
    strict = cluster_findings(resource, allow_jdbc_url=allow_jdbc_url, allow=allow)
    replaced = {(finding.code, finding.path) for finding in strict}
    kept = (finding for finding in found if (finding.code, finding.path) not in replaced)
    return (*strict, *kept)


def _beyond_references(around: Surroundings) -> tuple[Finding, ...]:
    """What follows from folders: who publishes into whose, and who reads what itself publishes."""
    output = around.resource
    if not isinstance(output, OutputDataset):
        return ()
    others = (each for each in around.neighbours if each.name != output.name)
    overlaps = overlap_findings((output, *others))
    found = tuple(finding for finding in overlaps if finding.resource == output.identity)
    upstream = {each.name: each for each in around.upstream}
    if output.name not in upstream:
        return found
    sources = {each.name: each for each in around.upstream_sources}
    return (*found, *dependence_findings((output,), upstream, sources))


def check(around: Surroundings, findings: tuple[Finding, ...], faulty: tuple[str, ...]) -> Checked:
    """Plan one resource, where nothing speaks against it.

    Args:
        around: it, with all that says something about it.
        findings: its own (`own_findings`).
        faulty: `Kind/name` of what it needs and what is wrong.
    """
    resource = around.resource
    is_runnable = isinstance(resource, OutputDataset | SkippingIndex)
    if faulty or errors_of(findings) or not is_runnable:
        return Checked(findings, faulty)
    contents = (entry.content for entry in around.closure)
    known = (content for content in contents if isinstance(content, Resource))
    bundle = bundle_for(resource.kind, resource.name, known)
    plan = plan_offline(bundle) if isinstance(resource, OutputDataset) else None
    return Checked(findings, (), bundle, plan, declarations_hash(bundle))


def needed(closure: Iterable[Entry], ref: Ref) -> tuple[Entry, ...]:
    """What a resource cannot do without, in the order of keys.

    A relationship names sources that an output may not read, and an index needs no more of an
    output than its folder: their references are not followed.

    Args:
        closure: it and everything that it refers to.
        ref: its key.
    """
    entries = {entry.ref: entry for entry in closure}
    found: set[Ref] = set()
    waiting = list(entries[ref].references)
    while waiting:
        current = waiting.pop()
        if current in entries and current not in found:
            found.add(current)
            if current.kind == DataSource.__name__:
                waiting.extend(entries[current].references)
    return tuple(entries[key] for key in sorted(found - {ref}))


def identity_of(ref: Ref) -> str:
    """`Kind/name`, as messages name a resource."""
    return f"{ref.kind}/{ref.name}"


def _told(resource: Resource) -> tuple[Ref, str, int]:
    metadata = resource.metadata
    ref = Ref(resource.kind, metadata.namespace or "", resource.name)
    return ref, metadata.uid or "", metadata.generation or 0
