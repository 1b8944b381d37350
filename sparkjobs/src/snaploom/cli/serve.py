"""`snaploom serve`: the pages of `snaploom page`, as of now, on this machine."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from snaploom.cli.console import message_console
from snaploom.cli.options import DEFAULT_PROJECT, Allow, Files, ProjectOptions
from snaploom.site.collection import refuse_undrawable
from snaploom.site.server import LOOPBACK, PageSource, page_server


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
