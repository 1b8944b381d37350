"""Brings a skipping index to its declaration: creates or alters it, and refreshes stale rows.

What has to be done is found first, as data, so that it can be shown instead of being done. Where
nothing has to be done, nothing is written: applying the same declaration again changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from snaploom.errors import IndexNotPossible
from snaploom.models.skippingindex import Index, RefreshMode
from snaploom.skipping.core.definition import IndexDefinition, SkippingDefinition
from snaploom.skipping.lifecycle import operations
from snaploom.skipping.lifecycle.alteration import Alteration, alter
from snaploom.skipping.lifecycle.declaration import Declaration, define
from snaploom.skipping.lifecycle.machine import require_owner
from snaploom.skipping.lifecycle.operations import silent
from snaploom.skipping.lifecycle.refreshplan import plan_refresh
from snaploom.skipping.lifecycle.target import IndexableTarget, Progress
from snaploom.skipping.stores.port import NEVER, IndexStore, StoredState


@dataclass(frozen=True)
class Application:
    """Steps that bring an index to its declaration."""

    declaration: Declaration
    """Declaration to apply."""
    is_new: bool
    """Whether it has to be created."""
    alteration: Alteration | None
    """Necessary alteration; None for none."""
    refresh: RefreshMode | None
    """How it has to be refreshed; None when its rows and the files agree."""
    steps: tuple[str, ...]
    """The same, for people."""


def plan_application(
    store: IndexStore, target: IndexableTarget, declaration: Declaration
) -> Application:
    """Plan the steps without doing them.

    Raises:
        IndexOwned: another resource owns the index.
        IndexNotPossible: something declared cannot be, or cannot be altered.
    """
    state = store.read()
    definition = state.definition
    if definition is None or not state.exists:
        wanted = define(declaration, target, 1)
        count = target.list_files(declaration.where).num_rows
        labels = ", ".join(index.label for index in wanted.indexes)
        created = (f"create {labels}", f"refresh {count} files")
        return Application(declaration, True, None, declaration.mode, created)
    require_owner(definition, declaration.owner)
    alteration, changes = _difference(definition, declaration, target)
    listing = target.list_files(declaration.where)
    asked = RefreshMode.INCREMENTAL if state.refreshed_at == NEVER else RefreshMode.AUTO
    plan = plan_refresh(store, state, definition, target, asked, listing)
    lagging = f"refresh {plan}" if plan.is_needed or state.refreshed_at == NEVER else ""
    steps = tuple(f"alter: {each}" for each in changes) + ((lagging,) if lagging else ())
    return Application(
        declaration,
        False,
        alteration if changes else None,
        declaration.mode if lagging else None,
        steps,
    )


def apply(
    store: IndexStore,
    target: IndexableTarget,
    application: Application,
    progress: Progress = silent,
) -> StoredState:
    """Carry out planned steps.

    Raises:
        SkippingError: it cannot be done; queries use what was there before.
    """
    declaration = application.declaration
    if application.is_new:
        operations.create(store, target, declaration)
    elif application.alteration is not None:
        alter(
            store,
            target,
            application.alteration,
            acting_for=declaration.owner,
            progress=progress,
        )
    if application.refresh is not None:
        operations.refresh(store, target, application.refresh, progress=progress)
    return store.read()


def _difference(
    definition: SkippingDefinition, declaration: Declaration, target: IndexableTarget
) -> tuple[Alteration, list[str]]:
    """Alteration to a declaration, and its description for people."""
    wanted = define(declaration, target, 1)
    _refuse_fixed(definition, wanted)
    alteration, steps = _of_indexes(definition.indexes, wanted.indexes, declaration.indexes)
    if definition.enabled != wanted.enabled:
        alteration = replace(alteration, enabled=wanted.enabled)
        steps.append("enable" if wanted.enabled else "disable")
    if definition.mode != wanted.mode:
        alteration = replace(alteration, mode=declaration.mode)
        steps.append(f"refresh mode {wanted.mode}, was {definition.mode}")
    if definition.where != wanted.where:
        alteration = replace(alteration, where=wanted.where)
        steps.append(f"where {wanted.where or 'nothing'}, was {definition.where or 'nothing'}")
    if definition.owner != wanted.owner:
        alteration = replace(alteration, owner=wanted.owner)
        steps.append(f"owned by {wanted.owner} from now on")
    properties: dict[str, str | None] = dict.fromkeys(dict(definition.properties))
    properties.update(wanted.properties)
    if definition.properties != wanted.properties:
        alteration = replace(alteration, properties=properties)
        steps.append("properties")
    return alteration, steps


def _of_indexes(
    present: Sequence[IndexDefinition],
    wanted: Sequence[IndexDefinition],
    declared: Sequence[Index],
) -> tuple[Alteration, list[str]]:
    """Indexes to add, to drop and to rebuild; `declared` are the sources of `wanted`."""
    known = {_identity(index): index for index in present}
    wishes = {_identity(index): index for index in wanted}
    added = [
        (index, source)
        for index, source in zip(wanted, declared, strict=True)
        if _identity(index) not in known
    ]
    dropped = [index for index in present if _identity(index) not in wishes]
    changed = [
        (known[key], index)
        for key, index in wishes.items()
        if key in known and known[key].parameters != index.parameters
    ]
    steps = [
        *(f"add {index.label}" for index, _ in added),
        *(f"drop {index.label}" for index in dropped),
        *(f"other parameters of {index.label}" for _, index in changed),
    ]
    alteration = Alteration(
        add=tuple(source for _, source in added),
        drop=frozenset(index.index_id for index in dropped),
        parameters={before.index_id: dict(after.parameters) for before, after in changed},
    )
    return alteration, steps


def _identity(index: IndexDefinition) -> object:
    return index.type, index.terms, index.key_label


def _refuse_fixed(definition: SkippingDefinition, wanted: SkippingDefinition) -> None:
    """Refuse changes of fixed fields, naming the first."""
    for name, before, after in (
        ("form", definition.form, wanted.form),
        ("key of the footers", definition.footer_key_label, wanted.footer_key_label),
        ("plain footer", definition.plaintext_footer, wanted.plaintext_footer),
    ):
        if before != after:
            raise IndexNotPossible(
                f"the {name} of a skipping index is decided when it is created",
                found=f"{after or 'none'} is declared",
                expected=str(before or "none"),
                hint="drop the index, vacuum it and apply again",
            )
