"""The page of one kind: a table for every object that its spec and status are made of.

Objects of several kinds are on the page of one of them only.
"""

from __future__ import annotations

from generation.markdown import NOTE
from generation.models import Sections, first_definition, resource_schema
from snaploom.models.base import one_line
from snaploom.models.common import API_VERSION
from snaploom.models.kinds import KINDS, Kind
from snaploom.models.schemas import Schema

_ORDER = ("OutputDataset", "DataSource", "FieldTransformer")
"""Kinds whose pages have what others have, too; the rest follows."""


def kind_page(kind: Kind) -> str:
    """The page."""
    root = resource_schema(kind.model)
    sections = Sections(root, others=definition_pages(kind))
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


def definition_pages(before: Kind | None = None, folder: str = "") -> list[tuple[str, Schema]]:
    """The pages of kinds before one, or of all kinds, with what they define."""
    order = sorted(KINDS, key=lambda kind: (*_ORDER, kind.name).index(kind.name))
    earlier = order if before is None else order[: order.index(before)]
    return [(f"{folder}{each.singular}.md", resource_schema(each.model)) for each in earlier]
