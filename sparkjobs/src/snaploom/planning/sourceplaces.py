"""The datasets that a source reads, under the names that other tools use for them."""

from __future__ import annotations

from snaploom.models.datasource import DataSource
from snaploom.planning.bundle import Bundle
from snaploom.planning.datasetnames import DatasetName
from snaploom.planning.reads import reads_of
from snaploom.planning.sources.registry import declared


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
