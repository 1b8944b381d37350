"""Which outputs an output reads: those whose folder holds files of its sources.

Nobody declares it. A source names files, an output a folder, and where the files lie in the folder
the one has to wait for the other. Wildcards are compared folder by folder, as Hadoop matches them;
in doubt an output is taken to be read, which costs a run at worst.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice

from snaploom.models.codes import make_finding
from snaploom.models.datasource import DataSource
from snaploom.models.finding import Finding
from snaploom.models.outputdataset import OutputDataset
from snaploom.planning.bundle import Bundle
from snaploom.planning.reads import ReadGraph, reads_of
from snaploom.planning.sources.registry import declared
from snaploom.planning.validation.outputfolder import comparable_folder

_SPECIAL = re.compile(r"[*?\[\]{}\\]")
_CHOICE = re.compile(r"\{([^{}]*)\}")
_ESCAPED = re.compile(r"\\(.)")
_MOST_CHOICES = 256
"""Expansions of `{a,b}` that are compared; beyond, only the text before the first is."""


def upstream_outputs(bundle: Bundle, outputs: Iterable[OutputDataset]) -> tuple[OutputDataset, ...]:
    """The outputs whose published files an output reads, ordered by name.

    `outputs` are the candidates, without the output itself.
    """
    listed = tuple(outputs)
    sources = {source.name: source for source in bundle.data_sources}
    names = _Folders(listed, sources).read_by(bundle.output)
    found = (output for output in listed if output.name in names)
    others = (output for output in found if output.name != bundle.output.name)
    return tuple(sorted(others, key=lambda output: output.name))


def dependence_findings(
    judged: Iterable[OutputDataset],
    outputs: Mapping[str, OutputDataset],
    sources: Mapping[str, DataSource],
) -> tuple[Finding, ...]:
    """A finding for every output that reads itself, directly or through others.

    Only `judged` get findings; `outputs` and `sources` are all of the namespace.
    """
    asked = tuple(judged)
    if not asked:
        return ()
    folders = _Folders(outputs.values(), sources)
    reads = ReadGraph({name: folders.read_by(output) for name, output in outputs.items()})
    circles = ((output, reads.circle(output.name)) for output in asked)
    return tuple(_finding(output, circle) for output, circle in circles if circle)


class _Folders:
    """Outputs by their folders, found by the files that somebody reads."""

    def __init__(self, outputs: Iterable[OutputDataset], sources: Mapping[str, DataSource]) -> None:
        self._sources, self._reads = sources, reads_of(sources)
        self._names: defaultdict[str, set[str]] = defaultdict(set)
        for output in outputs:
            folder = comparable_folder(output.spec.output_folder.folder_uri)
            self._names[folder].add(output.name)
        self._sorted = sorted(self._names)

    def read_by(self, output: OutputDataset) -> set[str]:
        """Names of the outputs that an output reads."""
        sources = self._reads.reached(output.spec.data_model.sources)
        globs = (glob for name in sources for glob in declared(self._sources[name]).globs)
        folders = {folder for glob in globs for folder in self._read_at(glob)}
        return {name for folder in folders for name in self._names[folder]}

    def _read_at(self, glob: str) -> Iterator[str]:
        for choice in _choices(glob):
            steps = comparable_folder(choice).split("/")
            for folder in self._near(choice):
                if _is_below(steps, folder.rstrip("/").split("/")):
                    yield folder

    def _near(self, glob: str) -> Iterator[str]:
        """Folders that begin as the glob does, and those that the glob's own folders lie in."""
        fixed = comparable_folder(_SPECIAL.split(glob, maxsplit=1)[0])
        end = fixed.find("/")
        while end >= 0:
            if fixed[: end + 1] in self._names:
                yield fixed[: end + 1]
            end = fixed.find("/", end + 1)
        begins = fixed.rstrip("/")
        for folder in islice(self._sorted, bisect_left(self._sorted, begins), None):
            if not folder.startswith(begins):
                break
            yield folder


def _choices(glob: str) -> tuple[str, ...]:
    """The globs that `{a,b}` stands for; the fixed beginning, where they are too many."""
    found = [glob]
    while any(_CHOICE.search(each) for each in found):
        if len(found) > _MOST_CHOICES:
            return (f"{_SPECIAL.split(glob, maxsplit=1)[0]}*/**",)
        found = [
            each[: choice.start()] + text + each[choice.end() :] if choice else each
            for each in found
            for choice in (_CHOICE.search(each),)
            for text in (choice[1].split(",") if choice else ("",))
        ]
    return tuple(found)


def _is_below(glob: list[str], folder: list[str]) -> bool:
    """Whether files that a glob matches can lie in a folder; both as steps of a path."""
    for step, name in zip(glob, folder, strict=False):
        if step == "**":
            return True
        if not fnmatchcase(name, _ESCAPED.sub(r"[\1]", step).replace("[^", "[!")):
            return False
    return len(glob) > len(folder)


def _finding(output: OutputDataset, circle: Sequence[str]) -> Finding:
    itself = len(circle) == 2
    return make_finding(
        "SL181",
        "the output reads its own snapshots"
        if itself
        else "outputs read each other's snapshots in a circle",
        resource=output.identity,
        path="spec.dataModel",
        found=" -> ".join(f"OutputDataset/{name}" for name in circle),
        expected="sources whose files do not come from this output",
    )


def read_first(bundles: Sequence[Bundle]) -> Mapping[str, frozenset[str]]:
    """By output, the others whose folders it reads."""
    outputs = [bundle.output for bundle in bundles]
    return {
        bundle.output.name: frozenset(read.name for read in upstream_outputs(bundle, outputs))
        for bundle in bundles
    }
