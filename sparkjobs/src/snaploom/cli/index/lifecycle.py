"""`snaploom index refresh`, `drop`, `vacuum`, `recover` and `compact`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from cyclopts import Parameter

from snaploom.cli.console import OutputForm
from snaploom.cli.index.execution import carry_out, put_back_when_interrupted
from snaploom.cli.index.indexoptions import DEFAULT_PLACE, PlaceOptions, Target, place_of
from snaploom.cli.index.rendering import show_reports
from snaploom.cli.options import Form
from snaploom.jobs.indexes.indexrequests import IndexAction, IndexReport, IndexRequest
from snaploom.jobs.indexes.lookup import find_index
from snaploom.jobs.namedfolders import by_hadoop
from snaploom.models.skippingindex import RefreshMode
from snaploom.skipping.lifecycle import operations
from snaploom.skipping.lifecycle.description import describe
from snaploom.skipping.stores.port import IndexStore


def refresh(
    target: Target,
    /,
    *,
    mode: Annotated[
        RefreshMode | None,
        Parameter(name="--mode", help="What to look at; omitted, as the index was declared."),
    ] = None,
    place: PlaceOptions = DEFAULT_PLACE,
    output: Form = OutputForm.TEXT,
) -> int:
    """Index new and changed files, and drop the rows of deleted files."""
    request = IndexRequest(IndexAction.REFRESH, place_of(target, place), mode=mode)
    show_reports(carry_out([request]), output)
    return 0


def drop(
    target: Target,
    /,
    *,
    place: PlaceOptions = DEFAULT_PLACE,
    output: Form = OutputForm.TEXT,
) -> int:
    """Delete a skipping index; its files stay until `vacuum`, and queries read every file."""
    return _keep(
        target,
        place,
        output,
        "dropped",
        lambda store, owner: operations.drop(store, acting_for=owner),
    )


def vacuum(
    target: Target,
    /,
    *,
    place: PlaceOptions = DEFAULT_PLACE,
    output: Form = OutputForm.TEXT,
) -> int:
    """Remove the files of a skipping index that was dropped."""
    return _keep(
        target, place, output, "its files are removed",
        lambda store, owner: operations.vacuum(store, acting_for=owner),
    )  # fmt: skip


def recover(
    target: Target,
    /,
    *,
    place: PlaceOptions = DEFAULT_PLACE,
    output: Form = OutputForm.TEXT,
) -> int:
    """Clean up after a failed operation, and check that the index rows can be read."""
    return _keep(target, place, output, "recovered", lambda store, _: operations.recover(store))


def compact(
    target: Target,
    /,
    *,
    place: PlaceOptions = DEFAULT_PLACE,
    output: Form = OutputForm.TEXT,
) -> int:
    """Merge small index segments into one; queries see the same rows."""
    return _keep(target, place, output, "compacted", lambda store, _: operations.compact(store))


def _keep(
    target: str,
    options: PlaceOptions,
    form: OutputForm,
    done: str,
    act: Callable[[IndexStore, str], object],
) -> int:
    """Runs an operation on the store of an index only, without Spark."""
    place = place_of(target, options)
    store = find_index(place, by_hadoop)
    with put_back_when_interrupted(place.label):
        act(store, place.owner)
    show_reports([IndexReport(place.label, (done,), describe(store))], form)
    return 0
