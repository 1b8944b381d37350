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
    instant_of,
    time_of,
)
from snaploom.cli.outputruns import weave_and_show
from snaploom.jobs.weaving.runoptions import RunOptions, refuse_unacknowledged
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
    selection = Selection(restated=time_of(time, "--time", "'snaploom snapshots' lists the times"))
    refuse_unacknowledged(acknowledge_readers, "--acknowledge-readers")
    options = RunOptions(selection, reason=reason)
    return weave_and_show(project.read(file, allow), [name], moment, options, output)
