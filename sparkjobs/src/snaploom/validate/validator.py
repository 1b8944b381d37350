"""`validate`: everything that is wrong with a set of resources, kind by kind, then across kinds."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.common import Resource
from snaploom.models.findings import Finding, Severity
from snaploom.models.outputdataset import OutputDataset
from snaploom.plan.findings import tree_findings
from snaploom.plan.tree import join_graph, plan_tree
from snaploom.policy.references import NamesOfKind, Scope, no_names, scope_of
from snaploom.policy.secretdetection import secret_findings
from snaploom.policy.verdicts import TextJudge, judge
from snaploom.sources.registry import cycle_findings, shaped_columns
from snaploom.validate.datarelationship import (
    applicator_findings,
    relationship_findings,
    source_findings,
    transformer_findings,
)
from snaploom.validate.outputdataset import output_findings, timed_findings
from snaploom.validate.outputs import dependence_findings, overlap_findings, place_findings
from snaploom.validate.skippingindex import index_findings

_Kind = TypeVar("_Kind", bound=Resource)
_KUBERNETES_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""RFC 1123 subdomain, which Kubernetes wants of the name of every custom resource."""


def validate(
    resources: Iterable[Resource],
    *,
    broken: frozenset[str] = frozenset(),
    missing_reference: Severity = Severity.ERROR,
    about: Collection[str] | None = None,
    allow: Allowances = NO_ALLOWANCES,
    judge_text: TextJudge = judge,
    others: NamesOfKind = no_names,
) -> tuple[Finding, ...]:
    """Every finding about resources; pure, the same for command line, admission and controller.

    Args:
        resources: of any kinds; references never leave a namespace.
        broken: identities (`Kind/name`) of resources that exist but could not be read; references
            to them are not reported.
        missing_reference: severity of a broken one: an error on the command line; a warning
            at admission, where resources arrive in any order (rule R15).
        about: identities of the resources to judge; None for all. The others are only referred to,
            which costs next to nothing.
        allow: entries allowed beyond the built-in lists.
        judge_text: judges texts of SQL and regular expressions; at once, unless somebody else has.
        others: names of resources by kind that are there too, for guesses at what was meant.
    """
    listed = tuple(resources)
    by_namespace: dict[str, list[Resource]] = defaultdict(list)
    for resource in listed:
        by_namespace[resource.metadata.namespace or ""].append(resource)
    findings: list[Finding] = []
    for members in by_namespace.values():
        findings.extend(
            _within(
                scope_of(
                    members, broken, missing_reference, allow, judge_text, shaped_columns, others
                ),
                about,
            )
        )
    outputs = [resource for resource in listed if isinstance(resource, OutputDataset)]
    judged = [item for item in listed if about is None or item.identity in about]
    return (
        *(finding for resource in judged for finding in _name_findings(resource)),
        *(finding for resource in judged for finding in secret_findings(resource)),
        *(finding for resource in judged for finding in place_findings(resource, allow)),
        *findings,
        *(f for f in overlap_findings(outputs) if about is None or f.resource in about),
    )


def _within(scope: Scope, about: Collection[str] | None) -> tuple[Finding, ...]:
    judged = _judged(scope, about)
    by_kind = (
        *(f for item in judged.applicators.values() for f in applicator_findings(item, scope)),
        *(f for item in judged.transformers.values() for f in transformer_findings(item, scope)),
        *(f for item in judged.sources.values() for f in source_findings(item, scope)),
        *(f for item in judged.relationships.values() for f in relationship_findings(item, scope)),
        *(f for item in judged.outputs.values() for f in output_findings(item, scope)),
        *(f for item in judged.indexes.values() for f in index_findings(item, scope)),
        *cycle_findings(scope.sources),
        *dependence_findings(judged.outputs.values(), scope.outputs, scope.sources),
    )
    faulty = frozenset(f.resource for f in by_kind if f.is_error or f.code == "SL130")
    trees = (f for item in judged.outputs.values() for f in _tree(item, scope, faulty))
    return tuple(f for f in (*by_kind, *trees) if about is None or f.resource in about)


def _judged(scope: Scope, about: Collection[str] | None) -> Scope:
    """The resources checked: those requested, and the relationships that trees need sound."""
    if about is None:
        return scope
    outputs = _chosen(scope.outputs, about)
    needed = {
        f"DataRelationship/{used.name}"
        for output in outputs.values()
        for used in output.spec.data_model.data_relationships
    }
    return replace(
        scope,
        sources=_chosen(scope.sources, about),
        relationships=_chosen(scope.relationships, needed.union(about)),
        applicators=_chosen(scope.applicators, about),
        transformers=_chosen(scope.transformers, about),
        outputs=outputs,
        indexes=_chosen(scope.indexes, about),
    )


def _chosen(resources: Mapping[str, _Kind], about: Collection[str]) -> dict[str, _Kind]:
    return {name: item for name, item in resources.items() if item.identity in about}


def _tree(output: OutputDataset, scope: Scope, faulty: frozenset[str]) -> tuple[Finding, ...]:
    model = output.spec.data_model
    names = [used.name for used in model.data_relationships]
    known = all(name in scope.relationships for name in names)
    sound = not faulty & {output.identity, *(f"DataRelationship/{name}" for name in names)}
    if not known or not sound:
        return ()
    graph = join_graph(model, (scope.relationships[name] for name in names))
    tree = plan_tree(graph)
    return (*tree_findings(output, graph, tree), *timed_findings(output, tree, scope))


def _name_findings(resource: Resource) -> Iterator[Finding]:
    if _KUBERNETES_NAME.fullmatch(resource.name):
        return
    suggestion = re.sub(r"[^a-z0-9.-]", "-", resource.name.lower())
    yield resource.finding(
        "SL120",
        "metadata.name",
        "this name works here, but Kubernetes would refuse it",
        found=resource.name,
        expected="lower-case letters, digits, `-` and `.`",
        hint=f"for a cluster, call it `{suggestion}`",
    )
