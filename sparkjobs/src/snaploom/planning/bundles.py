"""From a set of resources to the Bundle of one: it, and everything that it refers to.

References are followed to their end: the sources behind virtual ones, and what those name. Status
is left out, so that a Bundle changes only when a declaration does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from snaploom.loading.nearmisses import did_you_mean
from snaploom.models.codes import make_finding
from snaploom.models.datarelationship import DataRelationship
from snaploom.models.datasource import DataSource
from snaploom.models.fieldtransformer import FieldTransformer
from snaploom.models.finding import InvalidDeclarations
from snaploom.models.metadataapplicator import MetadataApplicator
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.resource import Resource
from snaploom.models.skippingindex import SkippingIndex
from snaploom.planning.bundle import Bundle
from snaploom.planning.reads import reads_of

_Kind = TypeVar("_Kind", bound=Resource)


def bundle_for(kind: str, name: str, resources: Iterable[Resource]) -> Bundle:
    """The Bundle of one OutputDataset or SkippingIndex.

    Only resources of its namespace are looked at. A reference to nothing is passed over: validation
    reports it.

    Raises:
        InvalidDeclarations: there is none of that kind and name.
    """
    listed = tuple(resources)
    chosen = next((r for r in listed if r.kind == kind and r.name == name), None)
    if chosen is None:
        raise _unknown(kind, name, listed)
    near = tuple(r for r in listed if r.metadata.namespace == chosen.metadata.namespace)
    sources, relationships = _named(near, DataSource), _named(near, DataRelationship)
    if isinstance(chosen, OutputDataset):
        used = [item.name for item in chosen.spec.data_model.data_relationships]
        reached = _reached(chosen.spec.data_model.sources, sources)
        return _bundle(near, reached, _chosen(used, relationships), output=chosen)
    if isinstance(chosen, SkippingIndex):
        target = chosen.spec.target
        output = _named(near, OutputDataset).get(target.output_dataset or "")
        reached = _reached([target.data_source] if target.data_source else [], sources)
        return _bundle(near, reached, (), index=chosen, indexed=output)
    raise _unknown(kind, name, listed)


def _bundle(
    near: tuple[Resource, ...],
    sources: tuple[DataSource, ...],
    relationships: tuple[DataRelationship, ...],
    output: OutputDataset | None = None,
    index: SkippingIndex | None = None,
    indexed: OutputDataset | None = None,
) -> Bundle:
    applicators = (name for s in sources for name in s.spec.variant.metadata_applicators)
    transformers = (name for s in sources for name in s.spec.variant.field_transformers)
    return Bundle(
        output_dataset=_stateless(output) if output else None,
        skipping_index=_stateless(index) if index else None,
        indexed_output=_stateless(indexed) if indexed else None,
        data_sources=tuple(map(_stateless, sources)),
        data_relationships=tuple(map(_stateless, relationships)),
        metadata_applicators=tuple(
            map(_stateless, _chosen(applicators, _named(near, MetadataApplicator)))
        ),
        field_transformers=tuple(
            map(_stateless, _chosen(transformers, _named(near, FieldTransformer)))
        ),
    )


def _reached(names: Iterable[str], sources: Mapping[str, DataSource]) -> tuple[DataSource, ...]:
    """The sources, and those that virtual ones read, ordered by name."""
    return tuple(sources[name] for name in sorted(reads_of(sources).reached(names)))


def _chosen(names: Iterable[str], resources: Mapping[str, _Kind]) -> tuple[_Kind, ...]:
    return tuple(resources[name] for name in sorted(set(names)) if name in resources)


def _named(resources: Iterable[Resource], kind: type[_Kind]) -> dict[str, _Kind]:
    return {item.name: item for item in resources if isinstance(item, kind)}


def _stateless(resource: _Kind) -> _Kind:
    return resource.model_copy(update={"status": None})


def _how_to_name(kind: str, known: Sequence[str]) -> str:
    return "give one of these names" if known else f"name the file that declares the {kind}"


def _unknown(kind: str, name: str, resources: Iterable[Resource]) -> InvalidDeclarations:
    known = sorted(resource.name for resource in resources if resource.kind == kind)
    finding = make_finding(
        "SL191",
        f"there is no {kind} of this name",
        resource=f"{kind}/{name}",
        found=name,
        expected=", ".join(known[:12]) if known else f"files that declare an {kind}",
        hint=did_you_mean(name, known) or _how_to_name(kind, known),
    )
    return InvalidDeclarations([finding])
