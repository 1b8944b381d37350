"""The datasets that a source reads, under the names that other tools use for them."""

from __future__ import annotations

from snaploom.planning.bundle import Bundle
from snaploom.planning.datasetnames import DatasetName
from snaploom.planning.sources.registry import declared


def read_places(bundle: Bundle, name: str) -> tuple[DatasetName, ...]:
    """The datasets that a source reads, directly or through others."""
    source = bundle.source(name)
    found = [declared(source).datasets, *(read_places(bundle, each) for each in source.spec.reads)]
    return tuple(dict.fromkeys(place for places in found for place in places))
