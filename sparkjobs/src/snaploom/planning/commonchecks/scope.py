"""The resources of one namespace by kind and name, and the severity of a missing reference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from snaploom.loading.nearmisses import Guesses
from snaploom.models.allowances import Allowances
from snaploom.models.codes import make_finding
from snaploom.models.datarelationship import DataRelationship
from snaploom.models.datasource import DataSource
from snaploom.models.fieldtransformer import FieldTransformer
from snaploom.models.finding import Finding, Severity
from snaploom.models.metadataapplicator import MetadataApplicator
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.resource import Resource
from snaploom.models.skippingindex import SkippingIndex
from snaploom.planning.declaredcolumns import DeclaredColumns
from snaploom.planning.judging.texts import TextJudge
from snaploom.planning.reads import ReadGraph, reads_of

_Kind = TypeVar("_Kind", bound=Resource)

NamesOfKind = Callable[[str], Iterable[str]]
"""From a kind to names of its resources in one namespace."""


ShapedColumns = Callable[[DataSource, Mapping[str, FieldTransformer]], DeclaredColumns | None]
"""From a source, and transformers by name, to the columns that it may give to an output."""


def no_names(kind: str) -> tuple[str, ...]:
    """Where there are no resources but those that were given."""
    return ()


@dataclass(frozen=True)
class Scope:
    """The resources of a namespace that others can refer to."""

    sources: Mapping[str, DataSource]
    relationships: Mapping[str, DataRelationship]
    applicators: Mapping[str, MetadataApplicator]
    transformers: Mapping[str, FieldTransformer]
    outputs: Mapping[str, OutputDataset]
    indexes: Mapping[str, SkippingIndex]
    broken: frozenset[str]
    """Identities of resources that exist but could not be read: no reference to them is missing."""
    missing_reference: Severity
    """Severity of a missing reference: an error on a laptop, a warning at admission."""
    allow: Allowances
    """Entries that declarations may use beyond the built-in lists."""
    judge_text: TextJudge
    shaped_columns: ShapedColumns
    """Columns of sources; kinds of sources, which know them, are above a scope."""
    others: NamesOfKind = no_names
    """Names of resources, by kind, that are there and were not given: for guesses."""
    guesses: Guesses = field(default_factory=Guesses)
    """Existing names that a missing name may be a misspelling of."""

    @cached_property
    def reads(self) -> ReadGraph:
        """Which sources read which."""
        return reads_of(self.sources)

    def columns_of(self, name: str) -> DeclaredColumns | None:
        """The columns that a source may give to an output; None where that is not known."""
        source = self.sources.get(name)
        return None if source is None else self.shaped_columns(source, self.transformers)

    def missing(self, kind: str, name: str, owner: Resource, path: str) -> tuple[Finding, ...]:
        """A finding when a reference leads to nothing."""
        known = self._names(kind)
        if name in known or f"{kind}/{name}" in self.broken:
            return ()
        there = {*known, *self.others(kind)}
        return (
            make_finding(
                "SL130",
                f"there is no {kind} of this name",
                resource=owner.identity,
                path=path,
                found=name,
                expected=f"the name of a {kind}",
                hint=self.guesses.did_you_mean(name, there) or f"add `{kind}/{name}`",
                severity=self.missing_reference,
            ),
        )

    def _names(self, kind: str) -> Mapping[str, Resource]:
        by_kind: dict[str, Mapping[str, Resource]] = {
            "DataSource": self.sources,
            "DataRelationship": self.relationships,
            "MetadataApplicator": self.applicators,
            "FieldTransformer": self.transformers,
            "OutputDataset": self.outputs,
        }
        return by_kind[kind]


def scope_of(
    resources: Iterable[Resource],
    broken: frozenset[str],
    missing_reference: Severity,
    allow: Allowances,
    judge_text: TextJudge,
    shaped_columns: ShapedColumns,
    others: NamesOfKind = no_names,
) -> Scope:
    """The scope of resources of one namespace; of two with the same identity the first counts."""
    listed = tuple(resources)
    return Scope(
        _by_name(listed, DataSource),
        _by_name(listed, DataRelationship),
        _by_name(listed, MetadataApplicator),
        _by_name(listed, FieldTransformer),
        _by_name(listed, OutputDataset),
        _by_name(listed, SkippingIndex),
        broken,
        missing_reference,
        allow,
        judge_text,
        shaped_columns,
        others,
    )


def _by_name(resources: tuple[Resource, ...], kind: type[_Kind]) -> dict[str, _Kind]:
    result: dict[str, _Kind] = {}
    for resource in resources:
        if isinstance(resource, kind):
            result.setdefault(resource.name, resource)
    return result
