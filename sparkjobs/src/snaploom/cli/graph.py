"""`snaploom graph`: sources, keys, relationships and the chosen tree, as a picture."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from cyclopts import Parameter

from snaploom.cli.console import message_console, print_findings, result_console
from snaploom.cli.options import Files
from snaploom.jobs.declarations import TREE_CODES, exit_code_of, read_declarations, refuse
from snaploom.planning.drawing import dot, mermaid
from snaploom.planning.picture import picture_of
from snaploom.planning.plan import plan_offline
from snaploom.planning.svg import to_svg


class GraphForm(StrEnum):
    """Form of a drawing."""

    MERMAID = "mermaid"
    DOT = "dot"
    SVG = "svg"


def graph(
    name: Annotated[str, Parameter(name="OUTPUT", help="Name of the OutputDataset.")],
    /,
    *,
    file: Files,
    output: Annotated[
        GraphForm,
        Parameter(name=["--output", "-o"], show_default=True, help="Form of the drawing."),
    ] = GraphForm.MERMAID,
) -> int:
    """Draw how an output is joined together; data is not looked at."""
    declarations = read_declarations(file)
    bundle = declarations.bundle(name)
    refuse(f for f in declarations.findings_for(bundle) if f.code not in TREE_CODES)
    plan = plan_offline(bundle)
    findings = declarations.placed(plan.findings)
    print_findings(findings, message_console())
    drawing = {
        GraphForm.MERMAID: lambda: mermaid(plan.graph, plan.tree),
        GraphForm.DOT: lambda: dot(plan.graph, plan.tree),
        GraphForm.SVG: lambda: to_svg(picture_of(bundle, plan.graph, plan.tree)),
    }[output]()
    result_console().print(drawing, markup=False, end="")
    return exit_code_of(findings)
