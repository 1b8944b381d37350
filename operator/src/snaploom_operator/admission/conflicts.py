"""Other resources in a review: those related, conflicts that are denied, and breaking changes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, islice, takewhile

from snaploom.models.allowances import Allowances
from snaploom.models.common import Resource
from snaploom.models.datarelationship import DataRelationship
from snaploom.models.datasource import DataSource
from snaploom.models.findings import Finding, Severity, errors_of, make_finding
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.report import ManifestPointer
from snaploom.output.history import SETTING_PATHS, asked_by, can_move, changed_settings
from snaploom.plan.history import Structure, merge_structures, structure_of
from snaploom.plan.tree import join_graph, plan_tree
from snaploom.policy.references import NamesOfKind, no_names, reads_of
from snaploom.policy.verdicts import TextJudge
from snaploom.sources.registry import cycle_findings
from snaploom.validate.outputs import comparable_folder, dependence_findings, folder_of, overlap
from snaploom.validate.validator import validate
from snaploom_operator.decision import Unparsable
from snaploom_operator.objects import Ref
from snaploom_operator.store.entries import references_of
from snaploom_operator.store.store import Store

DEPENDANTS_JUDGED = 300
"""Dependants that are checked for breaking changes; so many take about a second, and the API server
waits for five."""
LARGEST_DEPENDANTS = 2_000_000
"""Approximate characters of their specs: so many take some 0.7 seconds (ten of half a million took
1.9)."""


@dataclass(frozen=True)
class ReviewContext:
    """The related resources of a review."""

    near: tuple[Resource, ...] = ()
    """Everything that the resource and its dependants refer to, directly or not, and the
    dependants; without the resource itself."""
    broken: frozenset[str] = frozenset()
    """Identities of unparsable resources."""
    dependants: tuple[str, ...] = ()
    """Identities of the dependants that are checked."""
    unjudged: int = 0
    """Number of dependants that are not checked."""
    overlapping: tuple[OutputDataset, ...] = ()
    """Other outputs whose folders or tables may overlap with its own."""
    upstream: tuple[OutputDataset, ...] = ()
    """Outputs whose files it may read, directly or through others."""
    upstream_sources: tuple[DataSource, ...] = ()
    """The sources of those outputs."""
    others: NamesOfKind = no_names
    """Names of the namespace by kind, for suggestions about misspelt references."""


def review_context(resource: Resource, known: Store) -> ReviewContext:
    """Collect the related resources of a submitted resource."""
    ref = Ref.to(resource)
    users = sorted(known.referrers(ref) - {ref})
    judged = _judged(users, known)
    starts = (*references_of(resource), *judged)
    entries = known.related(ref, starts)
    readable = {
        entry.ref: entry.content for entry in entries if isinstance(entry.content, Resource)
    }
    overlapping: tuple[OutputDataset, ...] = ()
    upstream: tuple[OutputDataset, ...] = ()
    sources: tuple[DataSource, ...] = ()
    if isinstance(resource, OutputDataset):
        overlapping = known.overlapping(resource)
        upstream, sources = known.upstream(resource)
    return ReviewContext(
        near=tuple(readable.values()),
        broken=frozenset(e.ref.identity for e in entries if e.ref not in readable),
        dependants=tuple(user.identity for user in judged if user in readable),
        unjudged=len(users) - len(judged),
        overlapping=tuple(other for other in overlapping if other.name != resource.name),
        upstream=tuple(other for other in upstream if other.name != resource.name),
        upstream_sources=sources,
        others=partial(known.names, ref.namespace),
    )


def _judged(users: Sequence[Ref], known: Store) -> list[Ref]:
    sizes = (entry.size if (entry := known.entry(user)) else 0 for user in users)
    many = takewhile(
        lambda each: each[0] <= LARGEST_DEPENDANTS, zip(accumulate(sizes), users, strict=True)
    )
    return [user for _, user in islice(many, DEPENDANTS_JUDGED)]


def users_of(ref: Ref, known: Store) -> tuple[str, ...]:
    """Identities of the resources that refer to one and are not being deleted."""
    users = known.entries(known.referrers(ref) - {ref})
    contents = ((each.ref.identity, each.content) for each in users)
    return tuple(
        identity
        for identity, content in contents
        if isinstance(content, Unparsable) or content.metadata.deletion_timestamp is None
    )


FIXED_REASON = "ImmutableSettingChanged"
"""Reason of a run that preflight refuses for the same (`snaploom.errors`)."""


def contradictions(
    resource: Resource, before: Resource | None, context: ReviewContext
) -> tuple[Finding, ...]:
    """Every conflict of a submitted resource with existing ones; `before` is the stored one."""
    match resource:
        case DataSource():
            return _circle(resource, context.near)
        case OutputDataset():
            outputs = {each.name: each for each in (*context.upstream, resource)}
            sources = {item.name: item for item in context.near if isinstance(item, DataSource)}
            sources |= {source.name: source for source in context.upstream_sources}
            return (
                # The submitted output is reported, whichever of the two was created first.
                *(f for other in context.overlapping for f in overlap(resource, other)),
                *dependence_findings((resource,), outputs, sources),
                *_fixed(resource, before),
            )
    return ()


def _circle(source: DataSource, near: Iterable[Resource]) -> tuple[Finding, ...]:
    """The cycle of virtual sources that it closes, reported at this source."""
    sources = {item.name: item for item in (*near, source) if isinstance(item, DataSource)}
    if not reads_of(sources).circle(source.name):
        return ()
    return tuple(
        finding.model_copy(
            update={
                "resource": source.identity,
                "path": f"spec.{DataSource.variant_of(source.spec)}",
            }
        )
        for finding in cycle_findings(sources)
    )


def _fixed(output: OutputDataset, before: Resource | None) -> tuple[Finding, ...]:
    """Changes of settings that are fixed in the folder's manifest (rule P15)."""
    manifest = manifest_of(output, before)
    if manifest is None:
        return ()
    asked = asked_by(output, manifest.fixed)
    changed = changed_settings(
        manifest.fixed, asked, accept_root_change=output.spec.run.accept_root_change
    )
    return tuple(
        make_finding(
            "SL192",
            f"{FIXED_REASON}: the first publication fixed this for ever",
            resource=output.identity,
            path=SETTING_PATHS[name],
            found=asked[name],
            expected=manifest.fixed[name],
            hint="restore it, or publish to a new folder"
            + ("; run.acceptRootChange allows another root" if name == "root" else ""),
        )
        for name in changed
        # Whether a table has moved to its catalog, the next run sees in the folder.
        if name in asked and not can_move(name, manifest.fixed)
    )


def manifest_of(output: OutputDataset, before: Resource | None) -> ManifestPointer | None:
    """The manifest of an output's folder, from its status; None if it never published there."""
    if not isinstance(before, OutputDataset) or before.status is None:
        return None
    manifest = before.status.manifest
    if manifest is None or comparable_folder(manifest.uri) != folder_of(output):
        return None
    return manifest


_MISSING = "SL130"
"""A missing reference: only a warning here, but the resource stalls."""


@dataclass(frozen=True)
class ResourceSet:
    """Related resources of one namespace, at one moment."""

    resources: tuple[Resource, ...]
    broken: frozenset[str]
    allow: Allowances
    judge_text: TextJudge
    others: NamesOfKind = no_names
    """Names of the namespace by kind, for guesses."""

    def findings(self, about: Iterable[str]) -> tuple[Finding, ...]:
        """Findings about some of them; missing references are warnings."""
        return validate(
            self.resources,
            broken=self.broken,
            missing_reference=Severity.WARNING,
            about=frozenset(about),
            allow=self.allow,
            judge_text=self.judge_text,
            others=self.others,
        )

    def outputs(self, identities: Iterable[str]) -> dict[str, OutputDataset]:
        wanted = frozenset(identities)
        outputs = (item for item in self.resources if isinstance(item, OutputDataset))
        return {item.identity: item for item in outputs if item.identity in wanted}

    def structure(self, output: OutputDataset) -> Structure | None:
        """The structure of an output by its join tree; None without exactly one tree."""
        by_name = {r.name: r for r in self.resources if isinstance(r, DataRelationship)}
        names = [used.name for used in output.spec.data_model.data_relationships]
        if not all(name in by_name for name in names):
            return None
        tree = plan_tree(join_graph(output.spec.data_model, (by_name[name] for name in names)))
        return structure_of(tree) if tree.is_complete else None


def broken_by(before: ResourceSet, after: ResourceSet, about: Iterable[str]) -> tuple[Finding, ...]:
    """Errors that a change introduces in some resources, by their identities."""
    identities = tuple(about)
    errors = errors_of(after.findings(identities))
    if errors:
        known = {_key(finding) for finding in before.findings(identities)}
        errors = tuple(finding for finding in errors if _key(finding) not in known)
    faulty = {finding.resource for finding in errors}
    sound = [identity for identity in identities if identity not in faulty]
    return (*errors, *restructuring_findings(before, after, sound))


def newly_stalled(
    resource: Resource | None,
    before: ResourceSet,
    found: Iterable[Finding],
    dependants: Iterable[str],
) -> tuple[Finding, ...]:
    """An error for each valid dependant that stalls because the changed resource will stall.

    Dependants that already stall are left out; a new resource (None) has none that work.
    """
    faults = [finding for finding in found if _is_fault(finding)]
    if resource is None or not faults:
        return ()
    users = tuple(dependants)
    known = before.findings((resource.identity, *users))
    waiting = {finding.resource for finding in known if _is_fault(finding)}
    if resource.identity in waiting:
        return ()
    return tuple(
        make_finding(
            _MISSING,
            f"{resource.identity} could not be used any more: {faults[0].message}",
            resource=user,
            path="spec",
            found=f"{faults[0].path}: {faults[0].found}",
            expected="resources that can be used",
            hint=faults[0].hint,
            severity=Severity.ERROR,
        )
        for user in users
        if user not in waiting
    )


def _is_fault(finding: Finding) -> bool:
    return finding.is_error or finding.code == _MISSING


def _key(finding: Finding) -> tuple[str, str, str, str, str]:
    return finding.code, finding.resource, finding.path, finding.message, finding.found


def restructuring_findings(
    before: ResourceSet, after: ResourceSet, identities: Iterable[str]
) -> tuple[Finding, ...]:
    """An error for every published output whose join tree changes; all must be valid."""
    outputs = after.outputs(identities)
    former: Mapping[str, OutputDataset] = before.outputs(outputs)
    return tuple(
        make_finding(
            "SL192",
            "HistoryIncompatible: the join tree would contradict what is published",
            resource=identity,
            path="spec.dataModel",
            found=conflicts,
            expected="every field joined where it was, and grouped as it was",
            hint="give the changed source a new fieldName, or publish to a new folder",
        )
        for identity, output in outputs.items()
        if identity in former and manifest_of(output, former[identity]) is not None
        if (conflicts := _conflicts(before.structure(former[identity]), after.structure(output)))
    )


def _conflicts(was: Structure | None, becomes: Structure | None) -> str:
    if was is None or becomes is None:
        return ""
    return "; ".join(map(str, merge_structures(was, becomes).conflicts))
