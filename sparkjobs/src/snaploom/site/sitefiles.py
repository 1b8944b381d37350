"""Writes pages as files: `index.html`, and one file an output where there are several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from snaploom.errors import ArgumentInvalid
from snaploom.localfiles import open_plain, write_file
from snaploom.models.times import EpochNanos
from snaploom.site.document import is_ours, output_document, overview_document
from snaploom.site.pagedata import OutputPage

INDEX = "index.html"
OUTPUTS = "outputs"
"""Folder of the pages of several outputs."""
_LOOKED_AT = 4_096
"""Bytes at the beginning of a file that show whose it is."""


def site_of(pages: Sequence[OutputPage], now: EpochNanos, *, version: str = "") -> dict[str, str]:
    """The files of a site by their path: names of outputs are such that they name files.

    The page of a single output is the whole site. An open page compares `version`, which is empty
    for files.
    """
    if len(pages) == 1:
        return {INDEX: output_document(pages[0], version=version)}
    addressed = [(page, f"{OUTPUTS}/{page.name}.html") for page in pages]
    return {
        INDEX: overview_document(addressed, now, version=version),
        **{
            address: output_document(page, home=f"../{INDEX}", version=version)
            for page, address in addressed
        },
    }


def write_site(folder: Path, site: dict[str, str]) -> tuple[Path, ...]:
    """Write the files of a site; each is there as a whole or as it was.

    The folder is made where it is missing; `site` has the documents by path.

    Raises:
        ArgumentInvalid: a file of another origin is in the way; nothing is written.
        OSError: the file system refuses.
    """
    for path in site:
        _refuse_other(folder / path)
    written = []
    for path, document in site.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        write_file(target, document)
        written.append(target)
    return tuple(written)


def _refuse_other(path: Path) -> None:
    try:
        with open_plain(path) as stream:
            beginning = stream.read(_LOOKED_AT).decode("utf-8", errors="replace")
    except FileNotFoundError:
        return
    if not is_ours(beginning):
        raise ArgumentInvalid(
            "this file is no page of Snaploom, and would be overwritten",
            path="--to",
            found=str(path),
            expected="a new folder, or one that `snaploom page` has written",
            hint="name another folder, or move the file away",
        )
