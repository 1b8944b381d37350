"""`snaploom index describe`, `list` and `explain`: kept metadata, and files that a query reads."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Annotated

from cyclopts import Parameter
from pydantic import JsonValue
from rich.console import Console
from rich.table import Table

from snaploom import ondemand
from snaploom.cli.console import (
    OutputForm,
    print_documents,
    print_json,
    result_console,
    show_result,
    warn,
)
from snaploom.cli.index import options
from snaploom.cli.options import Allow, Form, allowed_by
from snaploom.errors import FormatNotAllowed, SkippingError
from snaploom.models.allowances import Allowances
from snaploom.models.common import EpochNanos, format_instant, now
from snaploom.run.folders import by_hadoop
from snaploom.run.indexes.indexrequests import (
    IndexAction,
    IndexedPlace,
    IndexReport,
    IndexRequest,
    find_index,
)
from snaploom.run.runevents import signal_handlers
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.lifecycle.description import Description, IndexDescription, list_indexes
from snaploom.skipping.lifecycle.description import describe as described
from snaploom.skipping.statements.syntax import PathName, Properties, StorePlace, parse_subject

# Renders reports and descriptions of skipping indexes as text and JSON.


def show_reports(reports: Sequence[IndexReport], form: OutputForm) -> None:
    """Print what was done, one line each; one document as it is, several as a list."""
    _warn(reports)
    if form is OutputForm.JSON:
        print_documents([document(report) for report in reports])
        return
    console = result_console()
    for report in reports:
        for done in report.done or ("nothing to do",):
            console.print(f"{report.label}: {done}.", markup=False)


def show_descriptions(reports: Sequence[IndexReport], form: OutputForm) -> None:
    """Everything that is known about indexes."""
    _warn(reports)
    if form is OutputForm.JSON:
        print_documents([document(report) for report in reports])
        return
    for report in reports:
        _describe(report, result_console())


def show_list(descriptions: Sequence[Description], form: OutputForm) -> None:
    """Indexes, one line each."""
    reports = [
        IndexReport(each.definition.target.label if each.definition else each.uri, (), each)
        for each in descriptions
    ]
    if form is OutputForm.JSON:
        print_json([document(report) for report in reports])
        return
    console = result_console()
    if not reports:
        console.print("No skipping index is kept here.")
        return
    titles = ("target", "state", "indexes", "files", "bytes", "refreshed", "last used", "owner")
    table = Table(*titles, box=None)
    for report in reports:
        each = report.description
        table.add_row(
            report.label,
            each.condition,
            ", ".join(index.definition.label for index in each.indexes) or "-",
            _covered(each),
            f"{each.bytes:,}",
            _instant(each.state.refreshed_at)[:19] or "never",
            _last_used(each)[:19],
            (each.definition.owner if each.definition is not None else "") or "-",
        )
    console.print(table)
    for report in reports:
        if report.description.problem:
            warn(f"{report.label}: {report.description.problem}")


def _covered(description: Description) -> str:
    coverage = description.coverage
    if coverage is None:
        return f"{description.rows:,} indexed"
    parts = [f"{coverage.indexed:,} indexed"]
    if coverage.stale:
        parts.append(f"{coverage.stale:,} changed")
    if coverage.missing:
        parts.append(f"{coverage.missing:,} missing")
    if coverage.gone:
        parts.append(f"{coverage.gone:,} gone")
    return ", ".join(parts)


def document(report: IndexReport) -> JsonValue:
    """The contract of `-o json`."""
    description = report.description
    state, definition = description.state, description.definition
    age = description.age_seconds(now())
    return {
        "target": report.label,
        "uri": "" if definition is None else definition.target.uri,
        "table": "" if definition is None else definition.target.table,
        "store": description.uri,
        "done": list(report.done),
        "state": description.condition,
        "version": state.version,
        "message": description.problem or state.message,
        "owner": "" if definition is None else definition.owner,
        "enabled": definition is not None and definition.enabled,
        "trusted": state.trusted,
        "form": "" if definition is None else definition.form,
        "mode": "" if definition is None else definition.mode,
        "where": "" if definition is None else definition.where,
        "indexes": [] if definition is None else [_index(each) for each in description.indexes],
        "properties": {} if definition is None else dict(definition.properties),
        "files": None if description.coverage is None else dict(asdict(description.coverage)),
        "sameFile": description.same_file,
        "rows": description.rows,
        "bytes": description.bytes,
        "lastRefreshed": _instant(state.refreshed_at),
        "lastChecked": _instant(state.checked_at),
        "ageSeconds": None if age is None else round(max(age, 0.0), 3),
        "lastUsed": _instant(description.last_used) if description.last_used else None,
        "warnings": list(report.warnings),
    }


def _index(described: IndexDescription) -> JsonValue:
    index = described.definition
    return {
        "id": index.index_id,
        "type": index.type,
        "on": [term.label for term in index.terms],
        "dataTypes": [term.data_type for term in index.terms],
        "parameters": dict(index.parameters),
        "enabled": index.enabled,
        "keyLabel": index.key_label,
        "known": described.known,
        "unknown": described.unknown,
    }


def _instant(time: EpochNanos) -> str:
    return format_instant(time) if time else ""


def _describe(report: IndexReport, console: Console) -> None:
    description = report.description
    definition, state = description.definition, description.state
    console.print(f"{report.label}: {description.condition}", markup=False)
    message = description.problem or state.message
    if message:
        console.print(f"  {message}", markup=False)
    if definition is None:
        return
    for name, value in _facts(description, definition):
        if value:
            console.print(f"  {name + ':':<12}{value}", markup=False)
    table = Table("index", "column", "type", "parameters", "known", box=None, pad_edge=False)
    for each in description.indexes:
        index = each.definition
        table.add_row(
            index.type,
            ", ".join(term.label for term in index.terms),
            ", ".join(term.data_type for term in index.terms),
            ", ".join(f"{name}={value}" for name, value in index.parameters) or "-",
            f"{each.known} of {each.known + each.unknown}",
        )
    console.print(table)


def _facts(description: Description, definition: SkippingDefinition) -> list[tuple[str, str]]:
    coverage, state = description.coverage, description.state
    age = description.age_seconds(now())
    return [
        ("files", definition.target.uri),
        ("table", definition.target.table),
        ("kept in", description.uri),
        ("size", f"{description.bytes:,} bytes" if description.bytes else ""),
        ("owner", definition.owner),
        ("where", definition.where),
        ("refresh", definition.mode),
        ("used", "" if definition.enabled else "no, it is disabled"),
        (
            "covers",
            ""
            if coverage is None
            else f"{coverage.indexed:,} files; {coverage.stale:,} changed since, "
            f"{coverage.missing:,} not indexed, {coverage.gone:,} gone",
        ),
        ("same file", description.same_file),
        ("refreshed", _instant(state.refreshed_at) or "never, so no query uses it"),
        (
            "age",
            "" if age is None else f"{timedelta(seconds=int(max(age, 0)))} since it was checked",
        ),
        ("last used", _last_used(description)),
    ]


def _last_used(description: Description) -> str:
    if description.last_used is None:
        return "not recorded"
    return _instant(description.last_used) or "never"


def _warn(reports: Sequence[IndexReport]) -> None:
    for report in reports:
        for warning in report.warnings:
            warn(f"{report.label}: {warning}")


# `snaploom index describe`, `list` and `explain`: shows skipping indexes and their use.


def describe(
    target: options.Target,
    /,
    *,
    offline: Annotated[
        bool, Parameter(help="Do not list the files, so that Spark is not needed.")
    ] = False,
    place: options.PlaceOptions = options.DEFAULT_PLACE,
    output: Form = OutputForm.TEXT,
) -> int:
    """Show what an index keeps, where, and how many of the files it covers."""
    named = options.place_of(target, place)
    if offline:
        show_descriptions(
            [IndexReport(named.label, (), described(find_index(named, by_hadoop)))], output
        )
    else:
        show_descriptions(options.carry_out([IndexRequest(IndexAction.DESCRIBE, named)]), output)
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
    conf: options.Conf = (),
    kms: options.Kms = None,
    allow: Allow = (),
    output: Form = OutputForm.TEXT,
) -> int:
    """List the skipping indexes below a folder."""
    settings = options.settings_of(conf, kms)
    found = list_indexes([options.base_of(location, settings)])
    if files:
        place = StorePlace(options.location_uri(location))
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
        (report,) = options.carry_out([IndexRequest(IndexAction.DESCRIBE, indexed)])
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
    conf: options.Conf = (),
    output: Form = OutputForm.TEXT,
) -> int:
    """Show which files a query would read, which indexes it used, and why not the others."""
    locations = [options.location_uri(each) for each in location]
    with signal_handlers() as interruption:
        explained = ondemand.explain_query(
            query, locations, options.pairs_of(conf, "--conf"), interruption
        )
    show_result(explained, output)
    return 0
