"""Finds the targets and stores of declared SkippingIndexes."""

from __future__ import annotations

from collections.abc import Sequence

from snaploom.cli.console import message_console, print_findings
from snaploom.cli.options import refuse_request
from snaploom.jobs.declarations.declarationfiles import Declarations, refuse
from snaploom.jobs.indexes.indexrequests import IndexedPlace
from snaploom.jobs.indexes.targets import index_names, place_of_resource
from snaploom.models.finding import Finding, InvalidDeclarations
from snaploom.skipping.statements.syntax import Properties


def declared_places(
    declarations: Declarations, names: Sequence[str], settings: Properties = ()
) -> tuple[IndexedPlace, ...]:
    """The target and store of every named index.

    Args:
        declarations: where they are.
        names: of the indexes; none for all.
        settings: of the Spark session.

    Raises:
        InvalidDeclarations: something is wrong with any of them, or there is none.
    """
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
