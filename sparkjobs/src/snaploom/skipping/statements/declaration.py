"""Converts statements and resources to declarations, the only input of the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from snaploom.errors import IndexNotPossible
from snaploom.models.skippingindex import RefreshMode, SkippingIndex
from snaploom.skipping.lifecycle.alteration import Alteration
from snaploom.skipping.lifecycle.declaration import Declaration
from snaploom.skipping.lifecycle.forms import NATIVE, OPEN_SEARCH
from snaploom.skipping.statements.properties import OWN_PROPERTIES
from snaploom.skipping.statements.syntax import AlterIndex, CreateIndex
from snaploom.skipping.stores.address import uri_of_store


@dataclass(frozen=True)
class StorePlace:
    """Declared place of an index."""

    location: str = ""
    """Folder (or cluster) below which it is kept; empty for the session's."""
    form: str = NATIVE
    """NATIVE, XSKIPPER or OPENSEARCH."""


def declaration_of_statement(statement: CreateIndex) -> Declaration:
    """Declaration of a statement.

    Raises:
        IndexNotPossible: two properties contradict each other.
    """
    properties = dict(statement.properties)
    return Declaration(
        indexes=statement.indexes,
        where=statement.where,
        enabled=properties.get("enabled", "true") == "true",
        mode=mode_of(properties) or RefreshMode.AUTO,
        form=properties.get("form", NATIVE),
        footer_key_label=properties.get("footer_key_label", ""),
        plaintext_footer=properties.get("plaintext_footer") == "true",
        properties=other_properties(properties),
    )


def place_of_statement(statement: CreateIndex) -> StorePlace:
    """Place of the index that a statement declares."""
    properties = dict(statement.properties)
    return StorePlace(location=properties.get("location", ""), form=properties.get("form", NATIVE))


def alteration_of_statement(statement: AlterIndex) -> Alteration:
    """Alteration of a statement.

    Raises:
        IndexNotPossible: two properties contradict each other.
    """
    properties = dict(statement.properties)
    return Alteration(
        enabled=properties["enabled"] == "true" if "enabled" in properties else None,
        mode=mode_of(properties),
        properties=dict(other_properties(properties)),
    )


def mode_of(properties: Mapping[str, str]) -> RefreshMode | None:
    """The refresh mode in properties of either name, if any; `IndexNotPossible` for two."""
    modes = {
        mode
        for name, mode in (
            ("auto_refresh", RefreshMode.AUTO),
            ("incremental_refresh", RefreshMode.INCREMENTAL),
        )
        if properties.get(name) == "true"
    }
    if "refresh_mode" in properties:
        modes.add(RefreshMode(properties["refresh_mode"]))
    if len(modes) > 1:
        raise IndexNotPossible(
            "the properties ask for two modes of refresh",
            found=" and ".join(sorted(modes)),
            expected="one of refresh_mode, auto_refresh and incremental_refresh",
            hint="leave one of the two out",
        )
    return modes.pop() if modes else None


def other_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties without a field in declarations."""
    return {name: value for name, value in properties.items() if name not in OWN_PROPERTIES}


def declaration_of_resource(resource: SkippingIndex) -> Declaration:
    """Declaration of a resource, which owns the index (rule S26)."""
    spec, encryption = resource.spec, resource.spec.encryption
    return Declaration(
        indexes=spec.indexes,
        where=spec.where or "",
        enabled=spec.enabled,
        mode=spec.refresh.mode,
        owner=resource.identity,
        form=place_of_store(resource).form,
        footer_key_label="" if encryption is None else encryption.footer_key_label,
        plaintext_footer=encryption is not None and encryption.plaintext_footer,
    )


def place_of_store(resource: SkippingIndex) -> StorePlace:
    """Place of the index that a resource declares.

    Raises:
        IndexNotPossible: the credentials of its OpenSearch are not in environment variables.
    """
    store = resource.spec.store
    if store.open_search is not None:
        return StorePlace(location=uri_of_store(store.open_search), form=OPEN_SEARCH)
    if store.parquet is None:
        return StorePlace()
    return StorePlace(location=store.parquet.location, form=store.parquet.form.value)
