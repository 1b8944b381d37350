"""`snaploom index apply`: applies SkippingIndex declarations."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from snaploom.cli.console import OutputForm
from snaploom.cli.index.declaredindexes import declared_places
from snaploom.cli.index.execution import carry_out
from snaploom.cli.index.indexoptions import Conf, Kms, settings_of
from snaploom.cli.index.rendering import show_reports
from snaploom.cli.options import DEFAULT_PROJECT, Allow, Files, Form, ProjectOptions
from snaploom.jobs.indexes.indexrequests import IndexAction, IndexRequest
from snaploom.models.finding import InvalidDeclarations


def apply(
    names: Annotated[
        tuple[str, ...],
        Parameter(name="INDEX", help="Names of SkippingIndexes; omitted, all of the files."),
    ] = (),
    /,
    *,
    file: Files,
    project: ProjectOptions = DEFAULT_PROJECT,
    conf: Conf = (),
    kms: Kms = None,
    allow: Allow = (),
    dry_run: Annotated[bool, Parameter(help="Show what would be done, and do nothing.")] = False,
    output: Form = OutputForm.TEXT,
) -> int:
    """Create or alter indexes until they are as declared, and refresh them by `refresh.mode`.

    Applying the same declarations again changes nothing.
    """
    declarations = project.read(file, allow)
    places = declared_places(declarations, names, settings_of(conf, kms))
    action = IndexAction.PLAN if dry_run else IndexAction.APPLY
    requests = [IndexRequest(action, place, declaration=place.declaration) for place in places]
    try:
        show_reports(carry_out(requests), output)
    except InvalidDeclarations as error:
        raise InvalidDeclarations(declarations.placed(error.findings)) from error
    return 0
