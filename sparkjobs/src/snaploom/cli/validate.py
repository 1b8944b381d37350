"""`snaploom validate`, `render` and `crds`: declarations, without touching data."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from snaploom.cli.console import (
    OutputForm,
    message_console,
    print_findings,
    print_json,
    result_console,
    summary_of,
)
from snaploom.cli.options import DEFAULT_PROJECT, Allow, Form, ProjectOptions, writing_to
from snaploom.loading.nearmisses import counted
from snaploom.models.findings import errors_of, exit_code_of
from snaploom.models.kinds import KINDS, to_yaml
from snaploom.models.schemas import check_crds, crd_text, write_crds

Paths = Annotated[
    tuple[Path, ...],
    Parameter(
        name=["--file", "-f"],
        consume_multiple=True,
        help="YAML files and folders; `-f` may be left out.",
        negative=(),
    ),
]

# `snaploom validate`: everything that is wrong or doubtful with declarations, without any data.


def validate(
    paths: Paths,
    *,
    project: ProjectOptions = DEFAULT_PROJECT,
    allow: Allow = (),
    output: Form = OutputForm.TEXT,
) -> int:
    """Check declarations: all findings at once, errors and warnings apart."""
    declarations = project.read(paths, allow)
    findings = declarations.findings
    errors = errors_of(findings)
    if output is OutputForm.JSON:
        print_json(
            {
                "resources": [resource.identity for resource in declarations.resources],
                "errors": len(errors),
                "warnings": len(findings) - len(errors),
                "findings": [finding.dump() for finding in findings],
            }
        )
    else:
        console = message_console()
        print_findings([f for f in findings if f.is_error], console)
        print_findings([f for f in findings if not f.is_error], console)
        resources = counted(len(declarations.resources), "resource")
        result_console().print(f"{resources}, {summary_of(findings)}.", markup=False)
    return exit_code_of(findings)


# `snaploom render`: declarations without variables, relative paths and short forms.


def render(
    paths: Paths,
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


# `snaploom crds`: the Kubernetes resource definitions, generated from the models.

FOLDER = Path("crds")


def crds(
    *,
    folder: Annotated[
        Path | None, Parameter(name="--dir", help="Folder to write or check; `crds` by default.")
    ] = None,
    check: Annotated[
        bool, Parameter(help="Only compare with the files in the folder; 1 on a difference.")
    ] = False,
) -> int:
    """Print the resource definitions, write them to a folder, or check a folder for drift."""
    console = result_console()
    if check:
        drift = check_crds(folder or FOLDER)
        for difference in drift:
            message_console().print(difference, markup=False)
        return 1 if drift else 0
    if folder is None:
        console.print("---\n".join(crd_text(kind) for kind in KINDS), markup=False, end="")
        return 0
    with writing_to(folder):
        written = write_crds(folder)
    for path in written:
        console.print(f"wrote {path}", markup=False)
    return 0
