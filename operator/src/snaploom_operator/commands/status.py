"""`snaploom status`: the status of outputs and indexes, as a tree."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console, Group, RenderableType
from rich.live import Live

from snaploom.models.outputdataset import OutputDataset
from snaploom.models.times import now
from snaploom.visibletext import json_visible
from snaploom_operator.commands.clusteroptions import ClusterOptions, Form, OutputForm
from snaploom_operator.commands.namespaceview import not_found_error, read_view
from snaploom_operator.commands.resourcenames import Named, parse_name
from snaploom_operator.commands.statusrebuild import output_named, rebuild_status
from snaploom_operator.commands.statustree import NamespaceView, forest_of, tree_of

_WATCH_SECONDS = 2.0
"""Refresh interval; six lists of one namespace take milliseconds."""
_PIPE_WIDTH = 400
"""Columns without a terminal, so that lines are not truncated."""


def status(
    name: Annotated[
        str | None,
        Parameter(
            name="KIND/NAME",
            help="One resource, such as `ods/flights`; without a kind, an OutputDataset. Default: "
            "all of the namespace.",
        ),
    ] = None,
    /,
    *,
    watch: Annotated[bool, Parameter(help="Refresh continuously.")] = False,
    rebuild: Annotated[
        bool,
        Parameter(
            help="First restore the published snapshots in the status of one OutputDataset from "
            "its folder, after the report of a run was lost. Needs the permissions to read the "
            "folder and to patch `outputdatasets/status`."
        ),
    ] = False,
    output: Form = OutputForm.TEXT,
    cluster: ClusterOptions = ClusterOptions(),  # noqa: B008 - frozen
) -> int:
    """Show the status of outputs and indexes: sources, runs, snapshots, and what they wait for."""
    named = None if name is None else parse_name(name)
    if rebuild:
        asyncio.run(_rebuild(output_named(named), cluster))
    if watch:
        asyncio.run(_watch(named, cluster))
    else:
        view = asyncio.run(_view(cluster))
        if output is OutputForm.JSON:
            _print_json(view, named)
        else:
            _console().print(_shown(view, named))
    return 0


async def _view(options: ClusterOptions) -> NamespaceView:
    place = options.place
    async with options.connected() as cluster:
        return await read_view(cluster, place, now())


async def _rebuild(named: Named, options: ClusterOptions) -> None:
    place = options.place
    async with options.connected() as cluster:
        view = await read_view(cluster, place, now())
        found = view.resources.get(str(named))
        if not isinstance(found, OutputDataset):
            raise not_found_error(named, view)
        await rebuild_status(found, cluster)


async def _watch(named: Named | None, options: ClusterOptions) -> None:
    console, place = _console(), options.place
    async with options.connected() as cluster:
        with Live(console=console, auto_refresh=False) as live:
            while True:
                view = await read_view(cluster, place, now())
                live.update(_shown(view, named), refresh=True)
                await asyncio.sleep(_WATCH_SECONDS)


def _shown(view: NamespaceView, named: Named | None) -> RenderableType:
    if named is None:
        trees = list(forest_of(view))
        return (
            Group(*trees)
            if trees
            else f"No Snaploom resources in the namespace {view.namespace}; use `-n` for another."
        )
    if str(named) not in view.resources:
        raise not_found_error(named, view)
    return tree_of(view, str(named))


def _print_json(view: NamespaceView, named: Named | None) -> None:
    if named is not None and str(named) not in view.resources:
        raise not_found_error(named, view)
    chosen = sorted(view.resources) if named is None else [str(named)]
    document = {
        "namespace": view.namespace,
        "resources": [view.resources[identity].dump() for identity in chosen],
        "unread": dict(view.unread) if named is None else {},
    }
    text = json_visible(json.dumps(document, indent=2, ensure_ascii=False))
    print(text, flush=True)  # noqa: T201 - the result


def _console() -> Console:
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    return Console(file=sys.stdout, soft_wrap=True, highlight=False, markup=False, width=width)
