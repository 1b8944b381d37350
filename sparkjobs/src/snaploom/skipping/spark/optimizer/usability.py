"""Decides which indexes apply to files read in a certain way, with reasons for others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from snaploom.models.skippingindex import IndexState
from snaploom.skipping.core.definition import IndexDefinition, SkippingDefinition
from snaploom.skipping.spark.optimizer.requests import Request
from snaploom.skipping.spark.optimizer.translation.subjects import root_names
from snaploom.skipping.spark.relations import fingerprint
from snaploom.skipping.stores.port import NEVER, StoredState

_OF_THE_CATALOG = "is a partition column of a table, whose partitions Spark prunes by itself"


def usable_part(
    definition: SkippingDefinition, request: Request
) -> tuple[SkippingDefinition, tuple[str, ...]]:
    """Indexes that apply to files read as in a request, and why others do not.

    A column whose values come from paths here and from the files there, or the other way round, is
    not the same column although it has the same name. In a table the catalog decides which values
    files of a partition have, and may change that tomorrow for the same files.
    """
    now = fingerprint.fingerprint(request.header)
    foreign = fingerprint.differences(definition.fingerprint, now)
    if foreign:
        reasons = tuple(f"the reader has changed: {each}" for each in foreign)
        return replace(definition, indexes=()), reasons
    partitions = {name for name, _ in definition.partition_columns}
    unusable = {
        **dict.fromkeys(partitions if request.header.get("table") else (), _OF_THE_CATALOG),
        **dict.fromkeys(
            set(request.partition_columns) ^ partitions, "comes from paths or from files"
        ),
    }
    otherwise = fingerprint.evaluation_differences(definition.fingerprint, now)
    whys = {index: _why_not(index, unusable, otherwise) for index in definition.indexes}
    usable = tuple(index for index, why in whys.items() if not why)
    unused = tuple(f"{index.label}: {why}" for index, why in whys.items() if why)
    return (replace(definition, indexes=usable) if unused else definition), unused


def _why_not(
    index: IndexDefinition,
    unusable: Mapping[str, str],
    otherwise: Sequence[fingerprint.Difference],
) -> str:
    for name in sorted({name for term in index.terms for name in root_names(term)}):
        if name in unusable:
            return f"{name} {unusable[name]}"
    if index.is_outdated:
        return "an older Snaploom did not distinguish all expressions: refresh it"
    if otherwise and any(term.names is None for term in index.terms):
        return f"its values may be others here: {otherwise[0]}"
    return ""


def why_idle(state: StoredState) -> str:
    """Reason why no query uses an index; empty if queries do, or if there is none."""
    if state.may_skip or not state.exists or state.definition is None:
        return ""
    if not state.definition.enabled:
        return "it is disabled"
    if not state.trusted:
        return "it was imported and is not verified: import it with verification"
    if state.refreshed_at == NEVER:
        failed = f" ({state.message})" if state.phase is IndexState.FAILED else ""
        return f"it was never refreshed, so it knows no file{failed}"
    return f"it is in state {state.phase.value}"
