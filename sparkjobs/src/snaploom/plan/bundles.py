"""From a set of resources to Bundles; the datasets and Secrets that their sources need."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from snaploom.loading.nearmisses import did_you_mean
from snaploom.models.common import Resource
from snaploom.models.datarelationship import DataRelationship
from snaploom.models.datasource import Credentials, DataSource
from snaploom.models.fieldtransformer import FieldTransformer, MetadataApplicator
from snaploom.models.findings import InvalidDeclarations, make_finding
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.run import RunAction
from snaploom.models.skippingindex import SkippingIndex
from snaploom.plan.bundle import Bundle
from snaploom.policy.references import reads_of
from snaploom.sources.declared import DatasetName
from snaploom.sources.registry import declared

# From a set of resources to the Bundle of one: it, and everything that it refers to.

_Kind = TypeVar("_Kind", bound=Resource)


def bundle_for(kind: str, name: str, resources: Iterable[Resource]) -> Bundle:
    """The Bundle of one OutputDataset or SkippingIndex.

    Only resources of its namespace are looked at. A reference to nothing is passed over: validation
    reports it.
    """
    listed = tuple(resources)
    chosen = next((r for r in listed if r.kind == kind and r.name == name), None)
    namespace = chosen.metadata.namespace if chosen is not None else None
    near = tuple(r for r in listed if r.metadata.namespace == namespace)
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
    return tuple(sources[name] for name in sorted(reads_of(sources).reached(names)))


def _chosen(names: Iterable[str], resources: Mapping[str, _Kind]) -> tuple[_Kind, ...]:
    return tuple(resources[name] for name in sorted(set(names)) if name in resources)


def _named(resources: Iterable[Resource], kind: type[_Kind]) -> dict[str, _Kind]:
    return {item.name: item for item in resources if isinstance(item, kind)}


def _stateless(resource: _Kind) -> _Kind:
    return resource.model_copy(update={"status": None})


def _unknown(kind: str, name: str, resources: Iterable[Resource]) -> InvalidDeclarations:
    known = sorted(resource.name for resource in resources if resource.kind == kind)
    finding = make_finding(
        "SL191",
        f"there is no {kind} of this name",
        resource=f"{kind}/{name}",
        found=name,
        expected=", ".join(known[:12]) if known else f"files that declare an {kind}",
        hint=did_you_mean(name, known)
        or ("give one of these names" if known else f"name the file that declares the {kind}"),
    )
    return InvalidDeclarations([finding])


# The datasets that a source reads, under the names that other tools use for them.


def read_places(bundle: Bundle, name: str) -> tuple[DatasetName, ...]:
    """The datasets that a source reads, directly or through others."""
    found = (declared(source).datasets for source in sources_behind(bundle, name))
    return tuple(dict.fromkeys(place for places in found for place in places))


def sources_behind(bundle: Bundle, name: str) -> tuple[DataSource, ...]:
    """A source and those that it reads, directly or through others, each once."""
    source = bundle.source(name)
    if not source.spec.reads:
        return (source,)
    by_name = {each.name: each for each in bundle.data_sources}
    return tuple(by_name[each] for each in reads_of(by_name).in_order(name))


# Keys of Secrets as environment variables: how a job gets credentials that nobody else may read.

_PREFIX = "SNAPLOOM_SECRET_"
_DIGITS = 16
"""Half of the digits that would resist a search for two equal ones, which gains nothing: the author
of a reference may read the Secret."""


@dataclass(frozen=True, order=True)
class SecretKey:
    """One key of a Secret in the namespace of the run."""

    secret: str
    key: str

    @property
    def variable(self) -> str:
        """Name of the environment variable that holds its value."""
        digest = hashlib.sha256(f"{self.secret}/{self.key}".encode()).hexdigest()
        return f"{_PREFIX}{digest[:_DIGITS].upper()}"


def user_and_password(credentials: Credentials) -> tuple[SecretKey, SecretKey] | None:
    """The keys of user name and password; None where they are not in a Secret."""
    named = credentials.from_secret
    if named is None:
        return None
    return SecretKey(named.name, named.user_key), SecretKey(named.name, named.password_key)


def secret_keys(bundle: Bundle, action: RunAction = RunAction.RUN) -> tuple[SecretKey, ...]:
    """Every key that a run needs, each once, in one order.

    A run that deletes reads no source: it must not wait for a Secret that went before it.
    """
    found = [each for each in _credentials(bundle, action) if each is not None]
    return tuple(sorted({key for each in found for key in user_and_password(each) or ()}))


def _credentials(bundle: Bundle, action: RunAction) -> Iterator[Credentials | None]:
    for source in bundle.data_sources if action is RunAction.RUN else ():
        yield declared(source).credentials
    index = bundle.skipping_index
    if index is not None and index.spec.store.open_search is not None:
        yield index.spec.store.open_search.credentials
