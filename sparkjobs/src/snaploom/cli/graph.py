"""`snaploom graph`, `page` and `serve`: join trees and pages of outputs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from snaploom.cli.console import message_console, print_findings, result_console
from snaploom.cli.options import (
    DEFAULT_PROJECT,
    Allow,
    Files,
    ProjectOptions,
    allowed_by,
    instant_of,
    refuse_request,
    time_of,
    writing_to,
)
from snaploom.cli.snapshots import PLACE, Place, folder_named, published_state
from snaploom.files.objectstore import ObjectStore
from snaploom.models.allowances import Allowances, VariableChoice
from snaploom.models.findings import InvalidDeclarations, make_finding
from snaploom.models.report import Report
from snaploom.output import history
from snaploom.output.state import FolderState
from snaploom.plan.drawings import mermaid, picture_of, published_mermaid, published_picture, to_svg
from snaploom.plan.history import PublishedModel, difference
from snaploom.plan.plan import plan_offline
from snaploom.run.declarations import TREE_CODES, exit_code_of, read_declarations, refuse
from snaploom.site.collection import (
    Clock,
    declared_pages,
    folder_page,
    read_reports,
    refuse_undrawable,
)
from snaploom.site.document import INDEX, site_of, write_site
from snaploom.site.pagedata import OutputPage
from snaploom.site.server import LOOPBACK, PageSource, page_server

# `snaploom graph`: sources, keys, relationships and the chosen tree, as a picture.


class GraphForm(StrEnum):
    """Form of a drawing."""

    MERMAID = "mermaid"
    SVG = "svg"


def graph(
    place: Place,
    /,
    *,
    file: Files | None = None,
    project: ProjectOptions = DEFAULT_PROJECT,
    at: Annotated[
        str | None,
        Parameter(help="Draw what is published, as of the newest snapshot at this time or before."),
    ] = None,
    diff: Annotated[
        tuple[str, str] | None,
        Parameter(help="Two times: draw how what is published then differs."),
    ] = None,
    allow: Allow = (),
    output: Annotated[
        GraphForm,
        Parameter(name=["--output", "-o"], show_default=True, help="Form of the drawing."),
    ] = GraphForm.MERMAID,
) -> int:
    """Draw how an output is joined together, declared or published; data is not looked at."""
    _refuse_confusion(file, at, diff)
    if at is None and diff is None:
        return _draw_declared(place, file or [], allowed_by(allow), project.choice, output)
    store, state = published_state(place, file, choice=project.choice)
    history.refuse_empty(state, store.uri)
    if diff is None:
        model = _model_at(store, state, at or "", "--at")
    else:
        model = difference(*(_model_at(store, state, time, "--diff") for time in diff))
    drawing = {
        GraphForm.MERMAID: lambda: published_mermaid(model),
        GraphForm.SVG: lambda: to_svg(published_picture(model)),
    }[output]()
    result_console().print(drawing, markup=False, end="")
    return 0


def _draw_declared(
    name: str, file: Files, allow: Allowances, choice: VariableChoice, output: GraphForm
) -> int:
    declarations = read_declarations(file, allow, choice)
    bundle = declarations.bundle(name)
    refuse(f for f in declarations.findings_for(bundle) if f.code not in TREE_CODES)
    plan = plan_offline(bundle)
    findings = declarations.placed(plan.findings)
    print_findings(findings, message_console())
    drawing = {
        GraphForm.MERMAID: lambda: mermaid(plan.graph, plan.tree),
        GraphForm.SVG: lambda: to_svg(picture_of(bundle, plan.graph, plan.tree)),
    }[output]()
    result_console().print(drawing, markup=False, end="")
    return exit_code_of(findings)


def _model_at(store: ObjectStore, state: FolderState, time: str, option: str) -> PublishedModel:
    instant = time_of(time, option, "'snaploom snapshots' lists the times of snapshots")
    return history.model_of(store.uri, state, history.snapshot_at(state, instant))


def _refuse_confusion(file: Files | None, at: str | None, diff: tuple[str, str] | None) -> None:
    if at is not None and diff is not None:
        message, found, hint = "one time and two are asked for at once", "--at and --diff", ""
    elif at is None and diff is None and not file:
        message, found = "nothing to draw is given", "no files and no time"
        hint = "add where the output is declared (-f PATH), or a time (--at TIME)"
    else:
        return
    finding = make_finding(
        "SL191",
        message,
        path="--at",
        found=found,
        expected="declarations, one time, or two",
        hint=hint or "leave out one of them",
    )
    raise InvalidDeclarations([finding])


# `snaploom page`: the state of outputs as pages of HTML that need no network and no server.


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
    _refuse_page_confusion(place, file, all_)
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


def _refuse_page_confusion(place: str | None, file: Files | None, all_: bool) -> None:
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


# `snaploom serve`: the pages of `snaploom page`, as of now, on this machine.


def serve(
    name: Annotated[
        str | None,
        Parameter(name="OUTPUT", help="Name of an OutputDataset; omitted, all of them."),
    ] = None,
    /,
    *,
    file: Files,
    project: ProjectOptions = DEFAULT_PROJECT,
    port: Annotated[
        int,
        Parameter(
            show_default=True,
            validator=Number(gte=0, lte=65_535),
            help="Port to listen on; 0 takes any that is free.",
        ),
    ] = 8765,
    allow: Allow = (),
) -> int:
    """Show what is declared and published in a browser, and keep it up to date, until Ctrl-C.

    Pages are those of `snaploom page`. They are made anew when declarations or manifests change,
    and an open page shows that within seconds. Only this machine is answered; nothing is written.
    """
    # What is wrong from the start is an error here; what becomes wrong later is shown as a page.
    declarations = project.read(file, allow)
    names = declarations.output_names if name is None else (name,)
    refuse_undrawable(declarations, names)
    source = PageSource(file, () if name is None else names, declarations.allow, project.choice)
    with page_server(source, LOOPBACK[0], port) as server:
        address = f"http://{LOOPBACK[0]}:{server.server_address[1]}/"
        message_console().print(f"{address} shows the outputs, until Ctrl-C", markup=False)
        server.serve_forever(poll_interval=0.2)
    return 0
