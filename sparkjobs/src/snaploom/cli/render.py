"""`snaploom render`: declarations without variables, relative paths and short forms."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from snaploom.cli.console import message_console, print_findings, result_console
from snaploom.cli.options import DEFAULT_PROJECT, Allow, ProjectOptions
from snaploom.jobs.declarations.declarationfiles import exit_code_of
from snaploom.models.yamltext import to_yaml


def render(
    paths: Annotated[
        tuple[Path, ...],
        Parameter(
            name=["--file", "-f"],
            consume_multiple=True,
            help="YAML files and folders; `-f` may be left out.",
            negative=(),
        ),
    ],
    *,
    project: ProjectOptions = DEFAULT_PROJECT,
    allow: Allow = (),
) -> int:
    """Print declarations with the values of variables, as `kubectl apply -f -` takes them.

    Relative paths become absolute paths of this machine, which no cluster has: write URIs, by
    variables, for what is applied to a cluster. Of a password in plain text only asterisks are
    printed. Nothing is printed where anything is wrong.
    """
    declarations = project.read(paths, allow)
    print_findings(declarations.findings, message_console())
    code = exit_code_of(declarations.findings)
    if code == 0:
        result_console().print(to_yaml(declarations.resources), end="")
    return code
