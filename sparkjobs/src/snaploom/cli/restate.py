"""`snaploom restate`: publish a corrected version of a snapshot."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from snaploom.cli.console import OutputForm
from snaploom.cli.options import (
    DEFAULT_PROJECT,
    Acknowledged,
    Allow,
    Files,
    Form,
    Now,
    OutputName,
    ProjectOptions,
    allowed_by,
    instant_of,
    time_of,
)
from snaploom.cli.outputruns import weave_and_show
from snaploom.jobs.declarations.declarationfiles import read_declarations
from snaploom.jobs.interruption import signal_handlers
from snaploom.jobs.weaving.runoptions import RunOptions
from snaploom.models.codes import make_finding
from snaploom.models.finding import InvalidDeclarations
from snaploom.planning.selection import Selection


def restate(
    name: OutputName,
    /,
    *,
    file: Files,
    project: ProjectOptions = DEFAULT_PROJECT,
    time: Annotated[
        str, Parameter(help="Time of the published snapshot, as 'snaploom snapshots' shows it.")
    ],
    reason: Annotated[
        str, Parameter(help="Why, for people; kept in the manifest with the new version.")
    ] = "",
    acknowledge_readers: Acknowledged = False,
    now: Now = None,
    allow: Allow = (),
    output: Form = OutputForm.TEXT,
) -> int:
    """Weave a published snapshot again, and put the new version in place of the old one.

    Declarations and sources are taken as they are now. Readers see the old version or the new one,
    never both; the old one can be read by the number of an older manifest until `readerGrace` has
    passed and `gc` has run.
    """
    moment = instant_of(now)
    wanted = time_of(time, "--time", "'snaploom snapshots' lists the times")
    if not acknowledge_readers:
        finding = make_finding(
            "SL191",
            "a published snapshot is to be replaced",
            path="--acknowledge-readers",
            found="not given",
            expected="the flag",
            hint="readers that list folders instead of asking the manifest see both versions until "
            "readerGrace has passed and 'snaploom gc' has removed the old one; add "
            "--acknowledge-readers if everybody knows",
        )
        raise InvalidDeclarations([finding])
    options = RunOptions(selection=Selection(restated=wanted), reason=reason)
    with signal_handlers() as interruption:
        declarations = read_declarations(file, allowed_by(allow), project.choice)
        return weave_and_show(declarations, [name], moment, None, interruption, output, options)
