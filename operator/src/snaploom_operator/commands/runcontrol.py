"""`snaploom trigger`, `suspend` and `resume`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter
from pydantic import JsonValue

from snaploom.confidential import visible_lines
from snaploom.models.common import format_instant, now
from snaploom_operator.cluster.client import COMMAND_LINE
from snaploom_operator.cluster.port import OURS
from snaploom_operator.commands.options import (
    ClusterOptions,
    Named,
    not_found_error,
    parse_runnable,
    read_view,
)
from snaploom_operator.errors import ObjectMissing
from snaploom_operator.objects import (
    ANNOTATION_PAUSED,
    ANNOTATION_RUN,
    JsonObject,
    Metadata,
    is_pause,
    mapping_in,
)

_PAUSED = f"the annotation {ANNOTATION_PAUSED} pauses every run"
_SUSPEND = ("spec", "run", "suspend")
Runnable = Annotated[
    str,
    Parameter(
        name="KIND/NAME",
        help="Output or index, such as `ods/flights`; without a kind, an OutputDataset.",
    ),
]


def trigger(
    name: Runnable,
    /,
    *,
    token: Annotated[
        str | None,
        Parameter(
            help="Identifies the request: the token of the last run starts no other. Default: "
            "the current time."
        ),
    ] = None,
    cluster: ClusterOptions = ClusterOptions(),  # noqa: B008 - frozen
) -> int:
    """Start a run now."""
    annotations: dict[str, JsonValue] = {ANNOTATION_RUN: token or format_instant(now())}
    named = parse_runnable(name)
    patched = _patch(named, lambda before: {"metadata": {"annotations": annotations}}, cluster)
    print(visible_lines(f"{named}: run requested{_start_obstacle(patched.after)}"))  # noqa: T201 - the result
    return 0


def suspend(
    name: Runnable,
    /,
    *,
    cluster: ClusterOptions = ClusterOptions(),  # noqa: B008 - frozen
) -> int:
    """Suspend runs; a run in flight continues."""
    named = parse_runnable(name)
    patched = _patch(named, lambda before: {"spec": {"run": {"suspend": True}}}, cluster)
    place = f" -n {cluster.namespace}" if cluster.namespace else ""
    done = "already suspended" if _is_suspended(patched.before) else "suspended"
    undone = f"{named}: {done}; `snaploom resume {name}{place}` undoes it"
    print(visible_lines(f"{undone}{_declared_elsewhere(patched)}"))  # noqa: T201 - the result
    return 0


def resume(
    name: Runnable,
    /,
    *,
    cluster: ClusterOptions = ClusterOptions(),  # noqa: B008 - frozen
) -> int:
    """Resume runs; of missed schedule ticks only the latest one runs."""
    named = parse_runnable(name)
    patched = _patch(named, _without_suspension, cluster)
    if not _is_suspended(patched.before):
        done = "was not suspended"
    elif _is_paused(patched.after):
        done = f"no longer suspended, but {_PAUSED}"
    else:
        done = "resumed"
    print(visible_lines(f"{named}: {done}{_declared_elsewhere(patched)}"))  # noqa: T201 - the result
    return 0


def _without_suspension(before: JsonObject) -> JsonObject:
    """The patch that removes `run.suspend`, rather than setting it to false.

    So the field has no owner, and server-side apply can set it without a conflict.
    """
    if not _is_suspended(before):
        return {}
    run = mapping_in(mapping_in(before, "spec"), "run")
    return {"spec": {"run": None if set(run) == {"suspend"} else {"suspend": None}}}


def _declared_elsewhere(patched: _Patched) -> str:
    """A warning about other field managers of `run.suspend`, such as Argo CD or Flux."""
    others = sorted(set(patched.managers) - {COMMAND_LINE})
    if not others:
        return ""
    return (
        f"\n{', '.join(others)} wrote run.suspend before, and may set it back: change it there as "
        f"well, or pause by the annotation {ANNOTATION_PAUSED}"
    )


def _start_obstacle(stored: JsonObject) -> str:
    if _is_paused(stored):
        return f"; it does not start while paused: {_PAUSED}"
    return "; it starts when the resource is resumed" if _is_suspended(stored) else ""


def _is_suspended(stored: JsonObject) -> bool:
    return mapping_in(mapping_in(stored, "spec"), "run").get("suspend") is True


def _is_paused(stored: JsonObject) -> bool:
    return is_pause(Metadata.of(stored).annotations)


@dataclass(frozen=True)
class _Patched:
    before: JsonObject
    after: JsonObject
    managers: tuple[str, ...]
    """Previous field managers of `run.suspend`."""


def _patch(
    named: Named, patch_of: Callable[[JsonObject], JsonObject], options: ClusterOptions
) -> _Patched:
    place = options.place
    resource = OURS[named.kind.name]

    async def send() -> _Patched:
        async with options.connected() as cluster:
            try:
                before = await cluster.get(resource, place, named.name)
            except ObjectMissing:
                raise not_found_error(named, await read_view(cluster, place, now())) from None
            managers = await cluster.managers(resource, place, named.name, _SUSPEND)
            patch, after = patch_of(before), before
            if patch:
                after = await cluster.patch(resource, place, named.name, patch)
            return _Patched(before, after, managers)

    return asyncio.run(send())
