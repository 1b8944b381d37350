"""Checks of the declarations of one resource: findings, bundle, plan and hash; pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import JsonValue

from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.datarelationship import DataRelationship
from snaploom.models.datasource import DataSource
from snaploom.models.fieldtransformer import FieldTransformer
from snaploom.models.finding import Finding, Severity, errors_of
from snaploom.models.metadataapplicator import MetadataApplicator
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.resource import Resource
from snaploom.models.skippingindex import SkippingIndex
from snaploom.planning.addresses import job_rules
from snaploom.planning.bundle import Bundle
from snaploom.planning.bundles import bundle_for
from snaploom.planning.commonchecks.scope import NamesOfKind, no_names
from snaploom.planning.dependence import dependence_findings
from snaploom.planning.judging.texts import TextJudge
from snaploom.planning.plan import RunPlan, plan_offline
from snaploom.planning.secretdetection import SECRET_CODE, secret_findings
from snaploom.planning.sources.registry import declared
from snaploom.planning.validation.overlaps import overlap_findings
from snaploom.planning.validation.skippingindex import server_findings
from snaploom.planning.validation.validator import validate
from snaploom_operator.decision import Unparsable
from snaploom_operator.objects import Ref
from snaploom_operator.store.entries import Entry, reached

# Rules that are errors in a cluster and only warnings locally.


def cluster_findings(
    resource: Resource,
    validated: Iterable[Finding] | None = None,
    *,
    allow_jdbc_url: bool = False,
    allow: Allowances = NO_ALLOWANCES,
) -> tuple[Finding, ...]:
    """An error for everything in a resource that this cluster does not accept.

    `validated` are its findings of `validate`, secrets included; None if it was not validated.
    """
    if validated is None:
        validated = secret_findings(resource)
    secrets = _as_errors(each for each in validated if each.code == SECRET_CODE)
    if isinstance(resource, SkippingIndex):
        return (*server_findings(resource, job_rules(allow)), *secrets)
    if not isinstance(resource, DataSource):
        return secrets
    of_kind = declared(resource).cluster_findings(allow_jdbc_url=allow_jdbc_url)
    return (*_as_errors(of_kind), *secrets)


def _as_errors(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(each.model_copy(update={"severity": Severity.ERROR}) for each in findings)


# The hash of a run's declarations: a different hash means that the last result is outdated.

Declared = DataSource | DataRelationship | MetadataApplicator | FieldTransformer


def declarations_hash(bundle: Bundle) -> str:
    """SHA-256 in hexadecimal."""
    indexed = bundle.indexed_output
    members: tuple[Declared, ...] = (
        *bundle.data_sources,
        *bundle.data_relationships,
        *bundle.metadata_applicators,
        *bundle.field_transformers,
    )
    parts: list[JsonValue] = [
        _without_run(bundle.runnable),
        None if indexed is None else indexed.spec.output_folder.dump(),
        [[member.identity, member.spec.dump()] for member in members],
    ]
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _without_run(resource: OutputDataset | SkippingIndex) -> JsonValue:
    """Its spec, with only those fields of `run` that change the result."""
    spec = resource.spec.dump()
    spec.pop("run", None)
    run = resource.spec.run
    return [resource.identity, spec, run.accept_root_change, run.adopt_folder]


# Checks the declarations of one resource: findings, bundle, plan and hash; pure.

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
    """Plan of an output with a bundle."""
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
