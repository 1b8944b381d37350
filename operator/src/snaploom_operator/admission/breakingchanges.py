"""Breaking changes: errors of other resources that a change introduces.

A change of a join tree under published snapshots is one of them: the next run would fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from snaploom.models.allowances import Allowances
from snaploom.models.codes import make_finding
from snaploom.models.datarelationship import DataRelationship
from snaploom.models.finding import Finding, Severity, errors_of
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.resource import Resource
from snaploom.planning.commonchecks.scope import NamesOfKind, no_names
from snaploom.planning.compatibility import Structure, merge_structures, structure_of
from snaploom.planning.graph import join_graph
from snaploom.planning.judging.texts import TextJudge
from snaploom.planning.tree import plan_tree
from snaploom.planning.validation.validator import validate
from snaploom_operator.admission.contradictions import manifest_of

_MISSING = "SL130"
"""A missing reference: only a warning here, but the resource stalls."""


@dataclass(frozen=True)
class ResourceSet:
    """Related resources of one namespace, at one moment."""

    resources: tuple[Resource, ...]
    broken: frozenset[str]
    allow: Allowances
    """Additions to the built-in lists."""
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
        """The outputs among some of them."""
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
