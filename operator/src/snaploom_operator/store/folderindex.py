"""An index of outputs and sources by folder.

Results are a superset: everything that shares a path is returned, and the caller compares exactly.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from snaploom.models.datasource import DataSource
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.resource import Resource
from snaploom.planning.sources.registry import declared
from snaploom.planning.validation.outputfolder import comparable_folder
from snaploom.planning.validation.overlaps import folder_of
from snaploom_operator.objects import Ref

_WILDCARD = re.compile(r"[*?\[{\\]")


def read_folders(source: DataSource) -> frozenset[str]:
    """The folders below which a source's files lie, up to the first wildcard of each glob."""
    fixed = (_WILDCARD.split(glob, maxsplit=1)[0] for glob in declared(source).globs)
    return frozenset(comparable_folder(path.rpartition("/")[0]) for path in fixed)


def folders_of(resource: Resource) -> frozenset[str]:
    """The folders of an output or a source; other kinds have none."""
    if isinstance(resource, OutputDataset):
        return frozenset({folder_of(resource)})
    return read_folders(resource) if isinstance(resource, DataSource) else frozenset()


class PathIndex:
    """Objects by folder path; every path ends with `/`."""

    def __init__(self) -> None:
        self._at: defaultdict[str, set[Ref]] = defaultdict(set)
        self._below: defaultdict[str, set[Ref]] = defaultdict(set)

    def add(self, path: str, ref: Ref) -> None:
        """Add an object at a path."""
        self._at[path].add(ref)
        for above in _above(path):
            self._below[above].add(ref)

    def discard(self, path: str, ref: Ref) -> None:
        """Remove an object from a path."""
        _drop(self._at, path, ref)
        for above in _above(path):
            _drop(self._below, above, ref)

    def touching(self, path: str) -> set[Ref]:
        """Objects at a path, above it, or below it."""
        found = {ref for place in (path, *_above(path)) for ref in self._at.get(place, ())}
        return found | self._below.get(path, set())


class Folders:
    """Outputs and sources of one namespace by their folders."""

    def __init__(self) -> None:
        self._outputs = PathIndex()
        self._sources = PathIndex()

    def add(self, ref: Ref, folders: Iterable[str]) -> None:
        """Add an output or a source with its folders."""
        index = self._outputs if ref.kind == OutputDataset.__name__ else self._sources
        for path in folders:
            index.add(path, ref)

    def discard(self, ref: Ref, folders: Iterable[str]) -> None:
        """Remove an output or a source from its folders."""
        index = self._outputs if ref.kind == OutputDataset.__name__ else self._sources
        for path in folders:
            index.discard(path, ref)

    def overlapping(self, output: OutputDataset) -> set[Ref]:
        """Outputs whose folder equals, contains or is inside that of this one; itself included."""
        return self._outputs.touching(folder_of(output))

    def readers(self, output: OutputDataset) -> set[Ref]:
        """Sources that may read what an output publishes."""
        return self._sources.touching(folder_of(output))

    def published_below(self, source: DataSource) -> set[Ref]:
        """Outputs whose files a source may read."""
        return {ref for path in read_folders(source) for ref in self._outputs.touching(path)}


def _above(path: str) -> list[str]:
    """Every folder that a folder lies in, the nearest first."""
    found = []
    end = path.rfind("/", 0, -1)
    while end >= 0:
        found.append(path[: end + 1])
        end = path.rfind("/", 0, end)
    return found


def _drop(index: defaultdict[str, set[Ref]], path: str, ref: Ref) -> None:
    index[path].discard(ref)
    if not index[path]:
        del index[path]
