"""Parsed requests of the optimizer rule."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import pyarrow as pa

from snaploom.skipping.core.listedfiles import Listing

FORGOTTEN = "?"
"""The answer to a request whose files are only named, and not known any more: the rule sends it
once more, with the files."""

MOST_ROOTS = 20
"""So many roots are looked up one by one; of more, only the folder that holds them all, for each
look-up costs a call to the store of the indexes."""


@dataclass(frozen=True)
class Request:
    """One relation of files and the conditions on it."""

    header: Mapping[str, object]
    """First line: see `snaploom.skipping.spark.optimizer.rule`."""
    body: str = ""
    """All other lines: the files; nothing where the header names files that were sent before."""

    @classmethod
    def parse(cls, text: str) -> Request:
        """Parse the rule's text; `ValueError` if that is not possible."""
        header, _, body = text.partition("\n")
        return cls(cast(Mapping[str, object], json.loads(header)), body)

    @property
    def settings(self) -> Mapping[str, object]:
        """Settings of the session; None for those that have their default."""
        return cast(Mapping[str, object], self.header["settings"])

    @property
    def filters(self) -> Sequence[object]:
        """Serialised conditions, all of which must hold."""
        return cast(Sequence[object], self.header.get("filters", ()))

    @property
    def name(self) -> str:
        """Table or location of the files, for people."""
        roots = cast(Sequence[str], self.header["roots"])
        table = self.header.get("table")
        more = f" and {len(roots) - 1} more" if len(roots) > 1 else ""
        return str(table) if table else f"{roots[0]}{more}" if roots else "no files"

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """URIs at or above which an index may lie: the table's location, then the roots."""
        location = self.header.get("location")
        places = [str(location)] if location else []
        roots = [
            root
            for root in cast(Sequence[str], self.header["roots"])
            if not any(root == place or root.startswith(f"{place}/") for place in places)
        ]
        if len(roots) > MOST_ROOTS:
            roots = [_common_folder(roots)]
        return tuple(dict.fromkeys(place.rstrip("/") for place in [*places, *roots] if place))

    @cached_property
    def partition_columns(self) -> tuple[str, ...]:
        """Names of the partition columns, in order."""
        schema = cast(Mapping[str, Sequence[Mapping[str, object]]], self.header["partitionSchema"])
        return tuple(str(field["name"]) for field in schema["fields"])

    @cached_property
    def partitions(self) -> Sequence[Sequence[object]] | None:
        """For each file the serialised values of the partition columns, where they matter."""
        return cast(Sequence[Sequence[object]] | None, self.header.get("partitions"))

    @property
    def listing_name(self) -> str:
        """Identifies the files: a name belongs to one listing only, in any JVM."""
        return str(self.header["listing"])

    @property
    def is_without_files(self) -> bool:
        """Whether the files were sent with an earlier request."""
        return not self.body

    def listing(self) -> Listing:
        """Files; `ValueError` if the lines differ in their number of files."""
        lengths, _, rest = self.body.partition("\n")
        modified, _, paths = rest.partition("\n")
        listing = Listing.parse(lengths, modified, paths)
        etags = self.header.get("etags")
        if etags is None:
            return listing
        if not isinstance(etags, list) or len(etags) != len(listing):
            raise ValueError(f"a listing of {len(listing)} files has other etags")
        return replace(listing, etags=pa.array(etags, pa.large_string()))


def _common_folder(roots: Sequence[str]) -> str:
    """The common folder of all; the first and the last in order differ earliest."""
    shared = []
    for one, other in zip(min(roots).split("/"), max(roots).split("/"), strict=False):
        if one != other:
            break
        shared.append(one)
    return "/".join(shared)
