"""Checks the declarations of one resource: findings, bundle, plan and hash; pure.

It reads the resource and its references, never the whole namespace, so that its cost does not grow
with the number of resources.
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
from snaploom.planning.bundles import bundle_for
from snaploom.planning.commonchecks.scope import NamesOfKind, no_names
from snaploom.planning.dependence import dependence_findings
from snaploom.planning.judging.texts import TextJudge
from snaploom.planning.plan import RunPlan, plan_offline
from snaploom.planning.validation.overlaps import overlap_findings
from snaploom.planning.validation.validator import validate
from snaploom_operator.gather.clusterrules import cluster_findings
from snaploom_operator.gather.declarationshash import declarations_hash
from snaploom_operator.objects import Ref
from snaploom_operator.observed import Unparsable
from snaploom_operator.store.entries import Entry
from snaploom_operator.store.references import reached

Basis = tuple[tuple[Ref, str, int] | int, ...]
"""Key, UID and generation of all inputs of a check, and `ResourceContext.name_changes`."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of checking declarations."""

    findings: tuple[Finding, ...]
    """About the resource itself."""
    faulty: tuple[str, ...]
    """`Kind/name` of invalid references."""
    bundle: Bundle | None = None
    """None unless it is runnable, and all references exist and are valid."""
    plan: RunPlan | None = None
    """Of an output with a bundle."""
    declarations: str = ""
    """Hash; empty without a bundle."""


@dataclass(frozen=True)
class ResourceContext:
    """One resource with all declarations that its check reads."""

    resource: Resource
    closure: tuple[Entry, ...]
    """The resource and its transitive references."""
    neighbours: tuple[OutputDataset, ...] = ()
    """Outputs whose folder may overlap with its own."""
    upstream: tuple[OutputDataset, ...] = ()
    """Outputs whose files it may read, directly or not; itself in a cycle."""
    upstream_sources: tuple[DataSource, ...] = ()
    """The sources of those outputs."""
    others: NamesOfKind = no_names
    """Names of the namespace by kind, for suggestions about misspelt references."""
    name_changes: int = 0
    """Differs when the names differ that a missing reference is compared with."""

    @property
    def basis(self) -> Basis:
        """The inputs of `check`; equal inputs have equal results."""
        others = (*self.neighbours, *self.upstream, *self.upstream_sources)
        return (
            self.name_changes,
            *((entry.ref, entry.uid, entry.generation) for entry in self.closure),
            *((Ref.to(r), r.metadata.uid or "", r.metadata.generation or 0) for r in others),
        )


def own_findings(
    context: ResourceContext,
    *,
    judge_text: TextJudge,
    allow_jdbc_url: bool = False,
    allow: Allowances = NO_ALLOWANCES,
) -> tuple[Finding, ...]:
    """Errors and warnings about one resource itself."""
    contents = [entry.content for entry in context.closure]
    known = [content for content in contents if isinstance(content, Resource)]
    refused = frozenset(c.ref.identity for c in contents if isinstance(c, Unparsable))
    resource, about = context.resource, {context.resource.identity}
    found = [
        *validate(
            known,
            broken=refused,
            missing_reference=Severity.ERROR,
            about=about,
            allow=allow,
            judge_text=judge_text,
            others=context.others,
        ),
        *_folder_findings(context),
    ]
    strict = cluster_findings(resource, found, allow_jdbc_url=allow_jdbc_url, allow=allow)
    replaced = {(finding.code, finding.path) for finding in strict}
    kept = (finding for finding in found if (finding.code, finding.path) not in replaced)
    return (*strict, *kept)


def _folder_findings(context: ResourceContext) -> tuple[Finding, ...]:
    """Findings about folders: overlapping outputs, and outputs that read their own publications."""
    output = context.resource
    if not isinstance(output, OutputDataset):
        return ()
    others = (each for each in context.neighbours if each.name != output.name)
    overlaps = overlap_findings((output, *others))
    found = tuple(finding for finding in overlaps if finding.resource == output.identity)
    upstream = {each.name: each for each in context.upstream}
    if output.name not in upstream:
        return found
    sources = {each.name: each for each in context.upstream_sources}
    return (*found, *dependence_findings((output,), upstream, sources))


def is_runnable(resource: Resource, findings: tuple[Finding, ...], faulty: tuple[str, ...]) -> bool:
    """Return whether a resource is of a kind with runs, and valid with all that it needs."""
    is_of_kind = isinstance(resource, OutputDataset | SkippingIndex)
    return is_of_kind and not faulty and not errors_of(findings)


def check(context: ResourceContext, findings: tuple[Finding, ...]) -> Checked:
    """Bundle and plan one resource that `is_runnable`."""
    resource = context.resource
    contents = (entry.content for entry in context.closure)
    known = (content for content in contents if isinstance(content, Resource))
    bundle = bundle_for(resource.kind, resource.name, known)
    plan = plan_offline(bundle) if isinstance(resource, OutputDataset) else None
    return Checked(findings, (), bundle, plan, declarations_hash(bundle))


def needed(closure: Iterable[Entry], ref: Ref) -> tuple[Entry, ...]:
    """The entries that a resource needs, in the order of keys.

    A relationship names sources that an output may not read, and an index needs only the folder of
    an output: their references are not followed.
    """
    entries = {entry.ref: entry for entry in closure}

    def near(key: Ref) -> frozenset[Ref]:
        is_source = key in entries and key.kind == DataSource.__name__
        return entries[key].references if is_source else frozenset()

    found = reached(entries[ref].references, near)
    return tuple(entries[key] for key in sorted(found & entries.keys() - {ref}))
