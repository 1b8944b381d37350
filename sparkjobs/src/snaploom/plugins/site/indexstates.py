"""States of declared skipping indexes: phase, coverage, and files that queries left out.

Needs Arrow, so that it is imported only where an index is declared (`site.index_states`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from snaploom.errors import SnaploomError
from snaploom.models.common import EpochNanos
from snaploom.models.skippingindex import SkippingIndex
from snaploom.plugins.site.pagedata import IndexState
from snaploom.plugins.site.pages import unread_index
from snaploom.run.declarations import Declarations
from snaploom.run.indexes.indexrequests import IndexedPlace, find_index, place_of_resource
from snaploom.skipping.lifecycle.description import describe, describe_usage
from snaploom.skipping.stores.port import NEVER


def index_states(declarations: Declarations, names: Sequence[str]) -> tuple[IndexState, ...]:
    """The state of each named SkippingIndex, which includes a failure to read it."""
    resources = {
        resource.name: resource
        for resource in declarations.resources
        if isinstance(resource, SkippingIndex)
    }
    found = []
    for name in names:
        unread = unread_index(resources[name], "")
        try:
            found.append(_state(unread, place_of_resource(declarations, name)))
        except SnaploomError as error:
            found.append(replace(unread, problem=error.message))
    return tuple(found)


def _state(index: IndexState, place: IndexedPlace) -> IndexState:
    store = find_index(place)
    described, used = describe(store), describe_usage(store)
    refreshed = described.state.refreshed_at
    state = replace(
        index,
        phase=described.condition,
        refreshed=None if refreshed == NEVER else EpochNanos(refreshed),
        files=described.rows,
        bytes=described.bytes,
        coverage=tuple((one.definition.label, one.known, one.unknown) for one in described.indexes),
        problem=described.problem,
    )
    if used.recorded is None:
        return state
    usage = used.recorded.total
    return replace(
        state,
        reads=usage.reads,
        files_considered=usage.files,
        files_dropped=usage.dropped_files,
        bytes_considered=usage.bytes,
        bytes_dropped=usage.dropped_bytes,
    )
