"""GEO_BOX: the box of latitudes and longitudes in which each file's points lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from snaploom.skipping.core.definition import IndexDefinition
from snaploom.skipping.core.filetable import FileTable, Mask
from snaploom.skipping.core.predicates import Leaf
from snaploom.skipping.core.terms import arrow_type
from snaploom.skipping.indexes import minmax
from snaploom.skipping.indexes.base import Feed, FooterColumn, ProvedFields, pack, unpack
from snaploom.skipping.indexes.checks import check_parameters, check_terms
from snaploom.skipping.indexes.footerproofs import only_where

SIDES = (("south", "north"), ("west", "east"))
"""Fields of the least and greatest latitude, and of the least and greatest longitude."""
Side = TypeVar("Side")
NUMBERS = ("float", "double", "decimal", "int", "bigint")


class GeoBoxBuilder:
    """Collects the box of one file."""

    def __init__(self, data_types: Sequence[str]) -> None:
        self._builders = [minmax.BoundsBuilder(data_type) for data_type in data_types]

    def add(self, columns: Sequence[pa.Array]) -> None:
        """Add a batch of latitudes and longitudes."""
        for builder, values in zip(self._builders, columns, strict=True):
            builder.add_values(values)

    def merge(self, other: bytes) -> None:
        """Add another builder's state."""
        self.add(unpack(other))

    def partial(self) -> bytes:
        """Collected state."""
        return pack([builder.bounds for builder in self._builders])

    def finish(self) -> Mapping[str, object]:
        """Return the row."""
        return _row([builder.row() for builder in self._builders])


@dataclass(frozen=True)
class GeoBox:
    """The index type."""

    name: str = "GEO_BOX"

    def check(self, definition: IndexDefinition) -> None:
        """Two numbers: latitude and longitude."""
        check_terms(definition, count=2, types=NUMBERS)
        check_parameters(definition, ())

    def fields(self, definition: IndexDefinition) -> Mapping[str, pa.DataType]:
        """The four sides of the box."""
        kept_as = [arrow_type(term.data_type) for term in definition.terms]
        return {
            side: value_type
            for sides, value_type in zip(SIDES, kept_as, strict=True)
            for side in sides
        }

    def feed(self, definition: IndexDefinition) -> Feed:
        """Values as they are."""
        return Feed.VALUES

    def builder(self, definition: IndexDefinition) -> GeoBoxBuilder:
        """A collector for one file."""
        return GeoBoxBuilder([term.data_type for term in definition.terms])

    def from_footers(
        self, definition: IndexDefinition, columns: Sequence[FooterColumn]
    ) -> ProvedFields:
        """The box, where the footer proves all its sides."""
        latitudes, longitudes = (
            minmax.footer_bounds(column, term.data_type)
            for column, term in zip(columns, definition.terms, strict=True)
        )
        proved = latitudes.files & longitudes.files
        sides = [(each.low, each.high) for each in (latitudes, longitudes)]
        fields = {side: only_where(proved, values) for side, values in _row(sides).items()}
        return ProvedFields(proved, fields)

    def may_match(self, definition: IndexDefinition, files: FileTable, leaf: Leaf) -> Mask | None:
        """Whether a coordinate inside the box makes the leaf TRUE."""
        low, high = SIDES[definition.terms.index(leaf.term)]
        bounds = minmax.kept_bounds(files, definition.index_id, low, high, leaf.term.data_type)
        return minmax.may_hold_between(bounds, leaf)

    def unserved(self, definition: IndexDefinition, leaf: Leaf) -> str:
        """Reason why the leaf is not answered."""
        return "a box proves nothing about this condition"


def _row(bounds: Sequence[tuple[Side, Side]]) -> Mapping[str, Side]:
    return {
        side: value
        for sides, values in zip(SIDES, bounds, strict=True)
        for side, value in zip(sides, values, strict=True)
    }


GEO_BOX = GeoBox()
