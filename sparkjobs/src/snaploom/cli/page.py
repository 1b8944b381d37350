"""`snaploom page`: the state of outputs as pages of HTML that need no network and no server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from snaploom.cli.console import message_console, print_findings, result_console
from snaploom.cli.options import (
    DEFAULT_PROJECT,
    Allow,
    Files,
    ProjectOptions,
    instant_of,
    refuse_request,
    writing_to,
)
from snaploom.cli.outputfolders import PLACE, folder_named
from snaploom.jobs.declarations.declarationfiles import exit_code_of
from snaploom.models.report import Report
from snaploom.site.collection import Clock, declared_pages, folder_page, read_reports
from snaploom.site.pagedata import OutputPage
from snaploom.site.sitefiles import INDEX, site_of, write_site


def page(
    place: Annotated[
        str | None,
        Parameter(
            name=PLACE,
            help="Name of an OutputDataset (with `-f`), or URI or absolute path of its folder; "
            "omitted with `--all`.",
        ),
    ] = None,
    /,
    *,
    to: Annotated[Path, Parameter(name="--to", help="Folder to write the pages to.")],
    file: Files | None = None,
    project: ProjectOptions = DEFAULT_PROJECT,
    all_: Annotated[
        bool, Parameter(name="--all", help="Every OutputDataset of the files.")
    ] = False,
    report: Annotated[
        list[Path] | None,
        Parameter(
            name="--report",
            consume_multiple=True,
            help="Reports of runs, as `run -o json` prints them, or folders of such files: "
            "they show what failed.",
        ),
    ] = None,
    now: Annotated[
        str | None,
        Parameter(help="Time to which ages are measured, ISO 8601; omitted, the present."),
    ] = None,
    allow: Allow = (),
) -> int:
    """Write what is declared and published as pages of HTML, without Spark.

    A page shows the join graph, the timeline with gaps and restatements, rows, sizes and match
    rates over time, schema history, checks, lineage, indexes and findings. It is one file, which
    loads nothing: it can be opened from disk, sent by mail, or put on any web server.

    Data is not looked at: pages come from declarations and from what the output folder's manifest
    records. What is doubtful is on the page and printed. A folder that cannot be read is a finding
    on its page, and ends the command with 1.
    """
    _refuse_confusion(place, file, all_)
    clock = Clock(instant_of(now), now is None)
    reports = read_reports(report or ())
    pages = _pages(place, file, project, clock, reports, allow)
    with writing_to(to):
        write_site(to, site_of(pages, clock.now))
    result_console().print(f"wrote {to / INDEX}", markup=False)
    findings = [finding for each in pages for finding in each.findings]
    print_findings(dict.fromkeys(findings), message_console())
    return 1 if any(each.problem for each in pages) else exit_code_of(findings)


def _pages(
    place: str | None,
    file: Files | None,
    project: ProjectOptions,
    clock: Clock,
    reports: tuple[Report, ...],
    allow: tuple[str, ...],
) -> tuple[OutputPage, ...]:
    if not file:
        return (folder_page(folder_named(place or ""), clock, reports),)
    declarations = project.read(file, allow)
    names = declarations.output_names if place is None else (place,)
    return declared_pages(declarations, names, clock, reports)


def _refuse_confusion(place: str | None, file: Files | None, all_: bool) -> None:
    if (place is not None) == all_:
        found = f"{place} and --all" if all_ else "no output, and no --all"
        message, path = "one output or all of them is needed", PLACE
        expected, hint = "the name of an output, or --all", "give one of the two"
    elif all_ and not file:
        message, path, found = "nothing is declared", "--file", "--all without -f"
        expected, hint = "files that declare OutputDatasets", "add where they are: --all -f PATH"
    else:
        return
    raise refuse_request(message, path, found, expected, hint)
