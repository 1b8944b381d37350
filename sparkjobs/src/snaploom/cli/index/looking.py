"""`snaploom index describe` and `list`: what is known about skipping indexes."""

from __future__ import annotations

from typing import Annotated, cast

from cyclopts import Parameter

from snaploom import lazy
from snaploom.cli.console import OutputForm, print_json, result_console
from snaploom.cli.index.options import (
    DEFAULT_PLACE,
    PlaceOptions,
    Target,
    base_of,
    location_uri,
    pairs_of,
    place_of,
)
from snaploom.cli.index.told import show_descriptions, show_list
from snaploom.cli.index.work import carry_out
from snaploom.cli.options import Form
from snaploom.jobs.indexlookup import find_index
from snaploom.jobs.indexrequests import ExplainQuery, IndexAction, IndexReport, IndexRequest
from snaploom.jobs.interruption import hearing_signals
from snaploom.skipping.lifecycle.description import describe as described
from snaploom.skipping.lifecycle.description import list_indexes


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
        str,
        Parameter(
            name="LOCATION",
            help="Folder below which indexes are kept, or `opensearch://host:port?...`.",
        ),
    ],
    /,
    *,
    output: Form = OutputForm.TEXT,
) -> int:
    """List the skipping indexes below a folder, without Spark."""
    show_list(list_indexes([base_of(location)]), output)
    return 0


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
    conf: Annotated[
        tuple[str, ...],
        Parameter(name="--conf", help="Setting of the Spark session, as `name=value`."),
    ] = (),
    output: Form = OutputForm.TEXT,
) -> int:
    """Tell which files a query would read, which index served what, and why others did not."""
    work = cast(ExplainQuery, lazy.resolve(lazy.EXPLAIN_INDEX))
    locations = [location_uri(each) for each in location]
    with hearing_signals() as interruption:
        explained = work(query, locations, pairs_of(conf, "--conf"), interruption)
    if output is OutputForm.JSON:
        print_json(explained.document)
    else:
        result_console().print(explained.text, markup=False)
    return 0
