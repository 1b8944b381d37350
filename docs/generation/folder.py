"""The page of an output folder: the names in it, and the documents of its log."""

from __future__ import annotations

import inspect
import re

from generation.kinds import definition_pages
from generation.markdown import NOTE, block, table
from generation.models import Sections, document_schema
from snaploom.models.base import ApiModel, one_line
from snaploom.models.report import Report
from snaploom.output import layout
from snaploom.output.entries import (
    Claim,
    Configure,
    EntryBase,
    Publish,
    Replace,
    Revoke,
    Tombstone,
)

ENTRIES: tuple[type[ApiModel], ...] = (Configure, Publish, Replace, Tombstone, Claim, Revoke)
"""Kinds of entries, in the order in which a folder meets them."""


def folder_page() -> str:
    """The page."""
    sections = Sections(
        *(document_schema(entry) for entry in ENTRIES),
        has_bounds=False,
        others=[*definition_pages(folder="kinds/"), ("report-json.md", document_schema(Report))],
        common=document_schema(EntryBase),
    )
    rows = [
        [f"`{entry.model_fields['action'].default}`", f"[{entry.__name__}](#{_anchor(entry)})",
         one_line(entry.__doc__ or "")]
        for entry in ENTRIES
    ]  # fmt: skip
    return "\n".join([
        "# The output folder\n",
        NOTE,
        "Contents of `outputFolder.folderUri` after a run. `snaploom.read` needs nothing else, and "
        "no file refers to the folder's location, so a folder can be copied as a whole.\n",
        block("text", _tree()),
        "`<run>` begins with the time at which the run started, as in "
        "`20200131T093000123Z-5be2a84c07d1`. Names of data files are never used twice.\n",
        "## The manifest log\n",
        "`metadata/manifest/` is authoritative: a file that it does not list is not published. "
        "Each entry is one immutable JSON document, numbered from 1 without gaps and written by "
        "put-if-absent. Folding them in order gives the state; checkpoints are such states. An "
        "entry with a newer `format` than the reader knows is refused.\n",
        table(["`action`", "entry", "meaning"], rows),
        "## Entries\n",
        "Instants are text, ISO 8601 in UTC.\n",
        sections.text(EntryBase.__name__, *(entry.__name__ for entry in ENTRIES)),
    ])  # fmt: skip


def _anchor(entry: type[ApiModel]) -> str:
    return entry.__name__.lower()


def _tree() -> str:
    text = inspect.getdoc(layout) or ""
    return re.sub(r" \(D\d+\)", "", text.split("```")[1].strip("\n"))
