"""The page of one kind: a table for every object that its spec and status are made of.

Objects that an OutputDataset has as well are on its page only.
"""

from __future__ import annotations

from generation.markdown import NOTE
from generation.models import Sections, first_definition, resource_schema
from snaploom.models.base import one_line
from snaploom.models.common import API_VERSION
from snaploom.models.kinds import Kind
from snaploom.models.outputdataset import OutputDataset


def kind_page(kind: Kind) -> str:
    """The page."""
    root = resource_schema(kind.model)
    is_first = kind.model is OutputDataset
    first = None if is_first else resource_schema(OutputDataset)
    sections = Sections(root, other=first, page="outputdataset.md")
    parts = [
        f"# {kind.name}\n",
        NOTE,
        f"{one_line(kind.model.__doc__ or '')}\n",
        f"`apiVersion: {API_VERSION}`, `kind: {kind.name}`; "
        f"`kubectl get {kind.plural}`, in short `{kind.short_name}`.\n",
    ]
    for top in ("spec", "status"):
        parts += [f"## {top}\n", sections.text(first_definition(root, top))]
    return "\n".join(parts)
