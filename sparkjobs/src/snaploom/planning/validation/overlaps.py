"""Outputs that would publish into each other's folders: the later one gets the finding (rule P14).

In a cluster the older of two outputs keeps its folder, whatever their names: somebody else's new
output must not be able to stop it. Declarations in files have no age; there the outer folder goes
before the inner one, and the first name before the second.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from snaploom.models.codes import make_finding
from snaploom.models.finding import Finding
from snaploom.models.outputdataset import OutputDataset
from snaploom.planning.validation.outputfolder import FOLDER, comparable_folder


def folder_of(output: OutputDataset) -> str:
    """The folder that an output publishes into, as it can be compared with others."""
    return comparable_folder(output.spec.output_folder.folder_uri)


def overlap(output: OutputDataset, other: OutputDataset) -> Finding | None:
    """Faults of an output whose folder is, lies in, or holds that of another.

    Returns:
        The finding, which blames `output`; None where the folders are apart.
    """
    mine, theirs = folder_of(output), folder_of(other)
    if mine == theirs:
        message = f"{other.identity} publishes to the same folder"
    elif mine.startswith(theirs):
        message = f"the folder lies in the folder of {other.identity}"
    elif theirs.startswith(mine):
        message = f"the folder of {other.identity} lies in this folder"
    else:
        return None
    return make_finding(
        "SL174",
        message,
        resource=output.identity,
        path=f"{FOLDER}.folderUri",
        found=f"{output.spec.output_folder.folder_uri}, and "
        f"{other.spec.output_folder.folder_uri} of {other.identity}",
        expected="a folder of its own for every OutputDataset",
    )


def overlap_findings(outputs: Iterable[OutputDataset]) -> tuple[Finding, ...]:
    """A finding for every output whose folder overlaps with that of one that came before it.

    The first of all that do is named. It takes as long as sorting does, however many there are.
    """
    placed = sorted(map(_place, outputs), key=lambda each: (each.folder, each.output.identity))
    pairs = zip(placed, _foremost(placed), strict=True)
    found = (overlap(each.output, first.output) for each, first in pairs if first.rank < each.rank)
    return tuple(finding for finding in found if finding is not None)


class _Placed(NamedTuple):
    """An output, with its compared properties."""

    folder: str
    rank: tuple[str, str, str]
    """Order of precedence; times are text of one form, so that they are compared as such."""
    output: OutputDataset


def _place(output: OutputDataset) -> _Placed:
    folder, created = folder_of(output), output.metadata.creation_timestamp
    return _Placed(folder, (created or "", folder, output.identity), output)


def _first(one: _Placed, other: _Placed) -> _Placed:
    return min(one, other, key=lambda each: each.rank)


def _foremost(placed: list[_Placed]) -> list[_Placed]:
    """Of each output and all that overlap with it, the one that came first.

    They are sorted by their folders, so that one within a folder follows it.
    """
    above: list[int] = []
    """Where the folders that the last one lies in are, the outermost first."""
    outer = list(placed)
    """Of each, and the folders that it lies in, the first."""
    inner = list(placed)
    """Of each, and the folders that lie in it, the first."""
    for number, each in enumerate(placed):
        while above and not each.folder.startswith(placed[above[-1]].folder):
            _leave(above, inner)
        if above:
            outer[number] = _first(outer[above[-1]], each)
        above.append(number)
    while above:
        _leave(above, inner)
    return list(map(_first, outer, inner))


def _leave(above: list[int], inner: list[_Placed]) -> None:
    """Leave a folder, and record its foremost output in the folder around it."""
    left = above.pop()
    if above:
        inner[above[-1]] = _first(inner[above[-1]], inner[left])
