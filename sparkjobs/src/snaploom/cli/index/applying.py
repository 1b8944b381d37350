"""`snaploom index apply`: make skipping indexes what resources declare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from snaploom.cli.console import OutputForm, message_console, print_findings
from snaploom.cli.index.options import Kms, refuse_request, settings_of
from snaploom.cli.index.told import show_reports
from snaploom.cli.index.work import carry_out
from snaploom.cli.options import Files, Form
from snaploom.jobs.declarations import Declarations, read_declarations, refuse
from snaploom.jobs.indexrequests import IndexAction, IndexedPlace, IndexRequest
from snaploom.jobs.indextargets import index_names, place_of_resource
from snaploom.models.finding import Finding, InvalidDeclarations
from snaploom.skipping.statements.syntax import Properties


def apply(
    names: Annotated[
        tuple[str, ...],
        Parameter(name="INDEX", help="Names of SkippingIndexes; omitted, all of the files."),
    ] = (),
    /,
    *,
    file: Files,
    conf: Annotated[
        tuple[str, ...],
        Parameter(name="--conf", help="Setting of the Spark session, as `name=value`."),
    ] = (),
    kms: Kms = None,
    dry_run: Annotated[bool, Parameter(help="Tell what would be done, and do nothing.")] = False,
    output: Form = OutputForm.TEXT,
) -> int:
    """Create or alter indexes until they are as declared, and refresh them by `refresh.mode`.

    Applying the same declarations again changes nothing.
    """
    declarations = read_declarations(file)
    places = _places(declarations, names, settings_of(conf, kms))
    action = IndexAction.PLAN if dry_run else IndexAction.APPLY
    requests = [IndexRequest(action, place, declaration=place.declaration) for place in places]
    try:
        show_reports(carry_out(requests), output)
    except InvalidDeclarations as error:
        raise InvalidDeclarations(declarations.placed(error.findings)) from error
    return 0


def _places(
    declarations: Declarations, names: Sequence[str], settings: Properties
) -> tuple[IndexedPlace, ...]:
    """What every index is about; nothing is done when anything is wrong with any of them."""
    places: list[IndexedPlace] = []
    findings: list[Finding] = [] if names else list(declarations.findings)
    for name in dict.fromkeys(names or index_names(declarations)):
        try:
            places.append(place_of_resource(declarations, name, settings))
        except InvalidDeclarations as error:
            findings.extend(finding for finding in error.findings if finding not in findings)
    refuse(findings)
    print_findings(findings, message_console())
    if not places:
        raise refuse_request(
            "these files declare no SkippingIndex",
            "INDEX",
            found="none",
            expected="at least one SkippingIndex",
        )
    return tuple(places)
