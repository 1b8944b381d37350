"""`snaploom index describe`, `list` and `explain`: shows skipping indexes and their use."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from snaploom import ondemand
from snaploom.cli.console import OutputForm, show_result
from snaploom.cli.index.execution import carry_out
from snaploom.cli.index.indexoptions import (
    DEFAULT_PLACE,
    Conf,
    Kms,
    PlaceOptions,
    Target,
    base_of,
    location_uri,
    pairs_of,
    place_of,
    settings_of,
)
from snaploom.cli.index.rendering import show_descriptions, show_list
from snaploom.cli.options import Allow, Form, allowed_by
from snaploom.errors import FormatNotAllowed, SkippingError
from snaploom.jobs.indexes.indexrequests import (
    IndexAction,
    IndexedPlace,
    IndexReport,
    IndexRequest,
)
from snaploom.jobs.indexes.lookup import find_index
from snaploom.jobs.interruption import signal_handlers
from snaploom.jobs.namedfolders import by_hadoop
from snaploom.models.allowances import Allowances
from snaploom.skipping.lifecycle.description import Description, list_indexes
from snaploom.skipping.lifecycle.description import describe as described
from snaploom.skipping.statements.declaration import StorePlace
from snaploom.skipping.statements.parser import parse_subject
from snaploom.skipping.statements.syntax import PathName, Properties


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
    """Show what an index keeps, where, and how many of the files it covers."""
    named = place_of(target, place)
    if offline:
        show_descriptions(
            [IndexReport(named.label, (), described(find_index(named, by_hadoop)))], output
        )
    else:
        show_descriptions(carry_out([IndexRequest(IndexAction.DESCRIBE, named)]), output)
    return 0


def list_(
    location: Annotated[
        str,
        Parameter(
            name="LOCATION",
            help="Folder below which indexes are kept, or `opensearch://host:port?...`.",
        ),
    ],
    /,
    *,
    files: Annotated[
        bool,
        Parameter(
            name="--files",
            help="Look at the files too, which needs Spark: how many are indexed, changed since, "
            "not indexed and gone.",
        ),
    ] = False,
    conf: Conf = (),
    kms: Kms = None,
    allow: Allow = (),
    output: Form = OutputForm.TEXT,
) -> int:
    """List the skipping indexes below a folder."""
    settings = settings_of(conf, kms)
    found = list_indexes([base_of(location, settings)])
    if files:
        place = StorePlace(location_uri(location))
        allowed = allowed_by(allow)
        found = [counted(each, place, settings, allowed) for each in found]
    show_list(found, output)
    return 0


def counted(
    found: Description, place: StorePlace, settings: Properties, allow: Allowances
) -> Description:
    """With the files counted; a failure to count them is reported as damage.

    Format and options come from the folder's writer: the allowlists apply to them.
    """
    definition = found.definition
    if definition is None or found.problem:
        return found
    target = definition.target
    subject = (
        parse_subject(target.table)
        if target.table
        else PathName(target.format, target.uri, target.options)
    )
    try:
        indexed = IndexedPlace(subject, place, settings=settings, allow=allow)
        (report,) = carry_out([IndexRequest(IndexAction.DESCRIBE, indexed)])
    except (SkippingError, FormatNotAllowed) as error:
        return replace(found, problem=f"its files cannot be listed: {error.message}")
    return report.description


def explain(
    query: Annotated[
        str,
        Parameter(name="QUERY", help="SQL; parquet.`/path` reads files without a table."),
    ],
    /,
    *,
    location: Annotated[
        tuple[str, ...],
        Parameter(name="--location", help="Folder below which indexes are kept."),
    ],
    conf: Conf = (),
    output: Form = OutputForm.TEXT,
) -> int:
    """Show which files a query would read, which indexes it used, and why not the others."""
    locations = [location_uri(each) for each in location]
    with signal_handlers() as interruption:
        explained = ondemand.explain_query(query, locations, pairs_of(conf, "--conf"), interruption)
    show_result(explained, output)
    return 0
