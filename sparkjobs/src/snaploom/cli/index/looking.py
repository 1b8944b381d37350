"""`snaploom index describe` and `list`: what is known about skipping indexes."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from snaploom.cli.console import OutputForm
from snaploom.cli.index.options import DEFAULT_PLACE, PlaceOptions, Target, place_of
from snaploom.cli.index.told import show_descriptions, show_list
from snaploom.cli.index.work import carry_out
from snaploom.cli.options import Form, folder_uri
from snaploom.jobs.indexlookup import find_index
from snaploom.jobs.indexrequests import IndexAction, IndexReport, IndexRequest
from snaploom.skipping.lifecycle.description import describe as described
from snaploom.skipping.lifecycle.description import list_indexes
from snaploom.skipping.stores.bases import open_base


def describe(
    target: Target,
    /,
    *,
    offline: Annotated[
        bool, Parameter(help="Do not look at the files, so that Spark is not needed.")
    ] = False,
    place: PlaceOptions = DEFAULT_PLACE,
    output: Form = OutputForm.TEXT,
) -> int:
    """Tell what an index keeps, where, and how many of the files it covers."""
    named = place_of(target, place)
    if offline:
        show_descriptions([IndexReport(named.label, (), described(find_index(named)))], output)
    else:
        show_descriptions(carry_out([IndexRequest(IndexAction.DESCRIBE, named)]), output)
    return 0


def list_(
    location: Annotated[
        str, Parameter(name="LOCATION", help="Folder below which indexes are kept.")
    ],
    /,
    *,
    output: Form = OutputForm.TEXT,
) -> int:
    """List the skipping indexes below a folder, without Spark."""
    show_list(list_indexes([open_base(folder_uri(location))]), output)
    return 0
