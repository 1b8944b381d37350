"""Altering a skipping index: its declaration, building only columns that are new.

Adding an index reads only the files that the rows describe as they are, for only that index;
dropping one rebuilds nothing. Other parameters make another index, under a new id: what was kept
under the former ones shows nothing about what they mean now.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from snaploom.errors import IndexNotFound, IndexNotPossible
from snaploom.models.skippingindex import Index, IndexState, RefreshMode
from snaploom.skipping.core.definition import IndexDefinition, SkippingDefinition
from snaploom.skipping.indexes.base import index_type
from snaploom.skipping.lifecycle import declaration, operations
from snaploom.skipping.lifecycle.declaration import compare, current_definition
from snaploom.skipping.stores.port import NEVER, IndexStore, Segment, StoredState


@dataclass(frozen=True)
class Alteration:
    """Requested changes; None or empty leaves a field as it is. Indexes are named by id."""

    enabled: bool | None = None
    mode: RefreshMode | None = None
    where: str | None = None
    """SQL that chooses files; the next refresh follows it."""
    owner: str | None = None
    """Resource that owns it from now on; empty for none."""
    properties: Mapping[str, str | None] = field(default_factory=dict)
    """Properties to set; None takes one away."""
    enabled_indexes: Mapping[str, bool] = field(default_factory=dict)
    parameters: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """All parameters of an index, which is built anew if they differ."""
    drop: frozenset[str] = frozenset()
    add: tuple[Index, ...] = ()


@dataclass(frozen=True)
class Altered:
    """Outcome of planning an alteration."""

    definition: SkippingDefinition
    to_build: tuple[IndexDefinition, ...]
    """Indexes that have no rows yet."""
    next_index: int
    """Number of the next index id afterwards."""


def alter(
    store: IndexStore,
    target: declaration.IndexableTarget,
    alteration: Alteration,
    *,
    acting_for: str = "",
    progress: declaration.Progress = operations.silent,
    timing: operations.Timing = operations.USUAL,
) -> StoredState:
    """Change a skipping index, in one commit; none if nothing changes."""

    def admit(state: StoredState) -> Altered:
        definition = operations.declared(state, store)
        operations.require_owner(definition, acting_for)
        return plan_alteration(definition, alteration, target, state.next_index)

    needs_rows = False

    def at_once(state: StoredState) -> StoredState | None:
        nonlocal needs_rows
        before = operations.available(state, store, timing)
        planned = admit(before)
        needs_rows = bool(planned.to_build) and before.refreshed_at != NEVER
        is_same = planned.definition == before.definition
        if needs_rows or is_same:
            return None
        return replace(_changed(before, planned), committed_at=timing.clock())

    committed = store.commit(at_once)
    if not needs_rows:
        return committed
    with operations.operation(store, lambda _: IndexState.UPDATING, admit, timing) as running:
        planned = admit(running.started)
        segments = _build(store, running.started, target, planned, progress)

        def build(state: StoredState) -> StoredState:
            changed = _changed(state, planned)
            is_empty = state.refreshed_at == NEVER
            phase = IndexState.EMPTY if is_empty else IndexState.ACTIVE
            return replace(changed, phase=phase, segments=(*state.segments, *segments))

        return running.finish(build)


def plan_alteration(
    definition: SkippingDefinition,
    alteration: Alteration,
    target: declaration.IndexableTarget,
    next_index: int,
) -> Altered:
    """Plan an alteration without doing it."""
    _refuse_unknown(definition, alteration)
    kept: list[IndexDefinition] = []
    to_build: list[IndexDefinition] = []
    for index in definition.indexes:
        if index.index_id in alteration.drop:
            continue
        enabled = alteration.enabled_indexes.get(index.index_id, index.enabled)
        altered = replace(index, enabled=enabled)
        parameters = alteration.parameters.get(index.index_id)
        wanted = index.parameters
        if parameters is not None:
            wanted = declaration.parameters_in(definition.form, index.type, parameters)
        if wanted != index.parameters:
            altered = replace(altered, index_id=f"i{next_index}", parameters=wanted)
            index_type(altered.type).check(altered)
            next_index += 1
            to_build.append(altered)
        kept.append(altered)
    added = declaration.define_indexes(
        alteration.add, target, next_index, kept, form=definition.form
    )
    if not kept and not added:
        raise declaration.nothing_kept("drop the whole skipping index")
    if alteration.where:
        target.list_files(alteration.where)  # refuses what chooses rows rather than files
    properties = dict(definition.properties)
    for name, value in alteration.properties.items():
        if value is None:
            properties.pop(name, None)
        else:
            properties[name] = value
    indexes = (*kept, *added)
    evaluation = definition.fingerprint.evaluation or target.fingerprint.evaluation
    after = replace(
        definition,
        indexes=indexes,
        fingerprint=replace(definition.fingerprint, evaluation=evaluation).for_indexes(indexes),
        enabled=definition.enabled if alteration.enabled is None else alteration.enabled,
        mode=definition.mode if alteration.mode is None else alteration.mode,
        where=definition.where if alteration.where is None else alteration.where,
        owner=definition.owner if alteration.owner is None else alteration.owner,
        properties=tuple(sorted(properties.items())),
    )
    declaration.check_form(after)
    return Altered(after, (*to_build, *added), next_index + len(added))


def _changed(state: StoredState, planned: Altered) -> StoredState:
    return replace(state, definition=planned.definition, next_index=planned.next_index)


def _build(
    store: IndexStore,
    state: StoredState,
    target: declaration.IndexableTarget,
    planned: Altered,
    progress: declaration.Progress,
) -> list[Segment]:
    if state.refreshed_at == NEVER or not planned.to_build:
        return []
    definition = planned.definition
    _, reasons, _ = current_definition(
        operations.declared(state, store), target, planned.next_index
    )
    if reasons:
        raise IndexNotPossible(
            "an index cannot be added to rows that were made with another reader",
            found="; ".join(reasons),
            hint="refresh with mode FULL first",
        )
    files = compare(target.list_files(definition.where), store.open(state)).unchanged
    if not files.num_rows:
        return []
    rows = target.build(planned.to_build, files, progress)
    return [replace(segment, merges=True) for segment in store.write_rows(rows, definition)]


def _refuse_unknown(definition: SkippingDefinition, alteration: Alteration) -> None:
    known = {index.index_id for index in definition.indexes}
    named = {*alteration.drop, *alteration.enabled_indexes, *alteration.parameters}
    if not named <= known:
        raise IndexNotFound(
            f"{definition.target.uri} has no index {', '.join(sorted(named - known))}",
            expected=", ".join(f"{index.index_id} {index.label}" for index in definition.indexes),
            hint="name one of those; `snaploom index describe` shows them",
        )
