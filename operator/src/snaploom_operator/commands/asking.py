"""`snaploom trigger`, `suspend` and `resume`: what people ask of an output or an index."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter
from pydantic import JsonValue

from snaploom.errors import SnaploomError
from snaploom.models.codes import make_finding
from snaploom.models.finding import InvalidDeclarations
from snaploom.models.times import format_instant, now
from snaploom_operator.cluster.resources import OURS
from snaploom_operator.commands.naming import Named, parse_runnable
from snaploom_operator.commands.options import ClusterOptions
from snaploom_operator.errors import ObjectMissing
from snaploom_operator.metadata import Metadata
from snaploom_operator.objects import ANNOTATION_PAUSED, ANNOTATION_RUN, JsonObject

_PAUSED = f"the annotation {ANNOTATION_PAUSED} holds back every run"
Runnable = Annotated[
    str,
    Parameter(
        name="KIND/NAME",
        help="An output or an index, such as `ods/flights`; a name alone is an OutputDataset.",
    ),
]


def trigger(
    name: Runnable,
    /,
    *,
    token: Annotated[
        str | None,
        Parameter(
            help="Names the request: one that the last run answered asks for nothing. Omitted, "
            "the present."
        ),
    ] = None,
    cluster: ClusterOptions = ClusterOptions(),  # noqa: B008 - frozen
) -> int:
    """Ask for a run now."""
    annotations: dict[str, JsonValue] = {ANNOTATION_RUN: token or format_instant(now())}
    named = parse_runnable(name)
    patched = _patch(named, {"metadata": {"annotations": annotations}}, cluster)
    print(f"{named}: a run is asked for{_held_back(patched.after)}")  # noqa: T201 - the result
    return 0


def suspend(
    name: Runnable,
    /,
    *,
    cluster: ClusterOptions = ClusterOptions(),  # noqa: B008 - frozen
) -> int:
    """Start no further run; one in flight goes on."""
    named = parse_runnable(name)
    was = _patch(named, _suspension(is_suspended=True), cluster).before
    place = f" -n {cluster.namespace}" if cluster.namespace else ""
    done = "suspended already" if _is_suspended(was) else "suspended"
    print(f"{named}: {done}; `snaploom resume {name}{place}` undoes it")  # noqa: T201 - the result
    return 0


def resume(
    name: Runnable,
    /,
    *,
    cluster: ClusterOptions = ClusterOptions(),  # noqa: B008 - frozen
) -> int:
    """Start runs again; of those that were missed, the latest tick runs once."""
    named = parse_runnable(name)
    patched = _patch(named, _suspension(is_suspended=False), cluster)
    if not _is_suspended(patched.before):
        done = "it was not suspended"
    elif _is_paused(patched.after):
        done = f"no longer suspended, but {_PAUSED}"
    else:
        done = "runs are started again"
    print(f"{named}: {done}")  # noqa: T201 - the result
    return 0


def _suspension(*, is_suspended: bool) -> JsonObject:
    return {"spec": {"run": {"suspend": is_suspended}}}


def _held_back(stored: JsonObject) -> str:
    """Why no run will start yet, where the object itself says so."""
    if _is_paused(stored):
        return f", and starts later: {_PAUSED}"
    return ", and starts when it is resumed: it is suspended" if _is_suspended(stored) else ""


def _is_suspended(stored: JsonObject) -> bool:
    spec = stored.get("spec")
    run = spec.get("run") if isinstance(spec, dict) else None
    return isinstance(run, dict) and run.get("suspend") is True


def _is_paused(stored: JsonObject) -> bool:
    return Metadata.of(stored).annotations.get(ANNOTATION_PAUSED) == "true"


@dataclass(frozen=True)
class _Patched:
    """A resource on both sides of a patch."""

    before: JsonObject
    after: JsonObject


def _patch(named: Named, patch: JsonObject, options: ClusterOptions) -> _Patched:
    """The resource as it was, and as it is after the patch.

    Raises:
        InvalidDeclarations: there is no such resource.
        ClusterError: the API server refuses the patch.
    """
    place = options.place
    resource = OURS[named.kind.name]

    async def send() -> _Patched:
        async with options.connected() as cluster:
            before = await cluster.get(resource, place, named.name)
            return _Patched(before, await cluster.patch(resource, place, named.name, patch))

    try:
        return asyncio.run(send())
    except ObjectMissing:
        raise _missing(named, place) from None


def _missing(named: Named, place: str) -> SnaploomError:
    return InvalidDeclarations(
        [
            make_finding(
                "SL191",
                f"there is no such resource in the namespace {place}",
                resource=str(named),
                found=str(named),
                hint="`snaploom status` lists what there is; name another namespace with `-n`",
            )
        ]
    )
