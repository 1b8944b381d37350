"""`snaploom graph`: sources, keys, relationships and the chosen tree, as a picture."""

from enum import StrEnum
from typing import Annotated

from cyclopts import Parameter

from snaploom.cli import options
from snaploom.cli.console import message_console, print_findings, result_console
from snaploom.cli.snapshots import Place, published_state
from snaploom.files.objectstore import ObjectStore
from snaploom.models.allowances import Allowances, VariableChoice
from snaploom.models.findings import TREE_CODES, exit_code_of, refuse
from snaploom.output import history
from snaploom.output.state import FolderState
from snaploom.plan.drawings import mermaid, picture_of, published_mermaid, published_picture, to_svg
from snaploom.plan.history import PublishedModel, difference
from snaploom.plan.plan import plan_offline
from snaploom.run.declarations import read_declarations


class GraphForm(StrEnum):
    """Form of a drawing."""

    MERMAID = "mermaid"
    SVG = "svg"


def graph(
    place: Place,
    /,
    *,
    file: options.Files | None = None,
    project: options.ProjectOptions = options.DEFAULT_PROJECT,
    at: Annotated[
        str | None,
        Parameter(help="Draw the newest published snapshot at this time or before."),
    ] = None,
    diff: Annotated[
        tuple[str, str] | None,
        Parameter(help="Two times: draw the difference of their snapshots."),
    ] = None,
    allow: options.Allow = (),
    output: Annotated[
        GraphForm,
        Parameter(name=["--output", "-o"], show_default=True, help="Form of the drawing."),
    ] = GraphForm.MERMAID,
) -> int:
    """Draw how an output is joined together, declared or published; data is not looked at."""
    _refuse_confusion(file, at, diff)
    if at is None and diff is None:
        return _draw_declared(place, file or [], options.allowed_by(allow), project.choice, output)
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
    name: str, file: options.Files, allow: Allowances, choice: VariableChoice, output: GraphForm
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
    instant = options.time_of(time, option, "'snaploom snapshots' lists the times of snapshots")
    return history.model_of(store.uri, state, history.snapshot_at(state, instant))


def _refuse_confusion(
    file: options.Files | None, at: str | None, diff: tuple[str, str] | None
) -> None:
    expected = "declarations, one time, or two"
    if at is not None and diff is not None:
        message, hint = "one time and two are asked for at once", "leave out one of them"
        raise options.refuse_request(message, "--at", "--at and --diff", expected, hint)
    if at is None and diff is None and not file:
        hint = "add where the output is declared (-f PATH), or a time (--at TIME)"
        raise options.refuse_request(
            "nothing to draw is given", "--at", "no files and no time", expected, hint
        )
