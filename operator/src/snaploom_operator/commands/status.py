"""`snaploom status`: how outputs and indexes stand, as a tree."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.tree import Tree

from snaploom.models.outputdataset import OutputDataset
from snaploom.models.times import now
from snaploom_operator.commands.naming import Named, parse_name
from snaploom_operator.commands.options import ClusterOptions, Form, OutputForm
from snaploom_operator.commands.reading import not_there, read_view
from snaploom_operator.commands.rebuilding import output_named, rebuild_status
from snaploom_operator.commands.statustree import View, forest_of, tree_of

_WATCH_SECONDS = 2.0
"""Between two looks; a person is watching, and six lists of one namespace cost milliseconds."""
_PIPE_WIDTH = 400
"""Columns of what is not on a terminal: lines are not cut there."""


def status(
    name: Annotated[
        str | None,
        Parameter(
            name="KIND/NAME",
            help="One resource, such as `ods/flights`; a name alone is an OutputDataset. Omitted, "
            "all of the namespace.",
        ),
    ] = None,
    /,
    *,
    watch: Annotated[bool, Parameter(help="Go on, and show what changes.")] = False,
    rebuild: Annotated[
        bool,
        Parameter(
            help="First write into the status of one OutputDataset what its folder says is "
            "published, where the report of a run was lost. It takes the right to read the folder, "
            "and to patch `outputdatasets/status`."
        ),
    ] = False,
    output: Form = OutputForm.TEXT,
    cluster: ClusterOptions = ClusterOptions(),  # noqa: B008 - frozen
) -> int:
    """Tell how outputs and indexes stand: sources, runs, snapshots, and what they wait for."""
    named = None if name is None else parse_name(name)
    if rebuild:
        asyncio.run(_rebuild(output_named(named), cluster))
    if watch:
        asyncio.run(_watch(named, cluster))
    else:
        view = asyncio.run(_look(cluster))
        if output is OutputForm.JSON:
            _print_json(view, named)
        else:
            _console().print(_shown(view, named))
    return 0


async def _look(options: ClusterOptions) -> View:
    place = options.place
    async with options.connected() as cluster:
        return await read_view(cluster, place, now())


async def _rebuild(named: Named, options: ClusterOptions) -> None:
    place = options.place
    async with options.connected() as cluster:
        view = await read_view(cluster, place, now())
        found = view.resources.get(str(named))
        if not isinstance(found, OutputDataset):
            raise not_there(named, view)
        await rebuild_status(found, cluster)


async def _watch(named: Named | None, options: ClusterOptions) -> None:
    """Show the tree anew whenever it changed, until somebody stops it."""
    console, place = _console(), options.place
    async with options.connected() as cluster:
        with Live(console=console, auto_refresh=False) as live:
            while True:
                view = await read_view(cluster, place, now())
                live.update(_shown(view, named), refresh=True)
                await asyncio.sleep(_WATCH_SECONDS)


def _shown(view: View, named: Named | None) -> RenderableType:
    if named is None:
        trees = list(forest_of(view))
        return (
            Group(*trees)
            if trees
            else f"Nothing is declared in the namespace {view.namespace}; `-n` names another."
        )
    return _tree(view, named)


def _tree(view: View, named: Named) -> Tree:
    if str(named) not in view.resources:
        raise not_there(named, view)
    return tree_of(view, str(named))


def _print_json(view: View, named: Named | None) -> None:
    if named is not None and str(named) not in view.resources:
        raise not_there(named, view)
    chosen = sorted(view.resources) if named is None else [str(named)]
    document = {
        "namespace": view.namespace,
        "resources": [view.resources[identity].dump() for identity in chosen],
        "unread": dict(view.unread) if named is None else {},
    }
    print(json.dumps(document, indent=2, ensure_ascii=False), flush=True)  # noqa: T201 - the result


def _console() -> Console:
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    return Console(file=sys.stdout, soft_wrap=True, highlight=False, markup=False, width=width)
