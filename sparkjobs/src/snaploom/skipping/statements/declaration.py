"""A skipping index as somebody declares it: what every door makes of what came through it.

Statements, the Python builder, the command line and resources differ in spelling only; from here on
there is one engine. Nothing here is resolved: columns are names, and where is text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from snaploom.errors import IndexNotPossible
from snaploom.models.skippingindex import Index, OpenSearchStore, SkippingIndex
from snaploom.skipping.statements.syntax import CreateIndex, DeclaredIndex, Properties

OWN_PROPERTIES = frozenset(
    {"location", "form", "refresh_mode", "enabled", "footer_key_label", "plaintext_footer"}
)
"""Properties that a declaration has fields for; the others are kept as they are."""


@dataclass(frozen=True)
class Declaration:
    """What is to be kept about the files of a target, and where."""

    indexes: tuple[DeclaredIndex, ...]
    """One or more."""
    where: str = ""
    """SQL that chooses files (ruling D33)."""
    mode: str = "AUTO"
    """Refresh mode: FULL, INCREMENTAL or AUTO."""
    enabled: bool = True
    """Whether queries use any of it."""
    form: str = "NATIVE"
    """`NATIVE`, `XSKIPPER` or `OPENSEARCH`."""
    location: str = ""
    """Folder below which the index is kept; empty for the caller's."""
    open_search: OpenSearchStore | None = None
    """The cluster of the form OPENSEARCH; None for the session's (`spark.datasource.flint.*`)."""
    footer_key_label: str = ""
    """Key of the footers, when the index is encrypted."""
    plaintext_footer: bool = False
    """Whether footers stay readable without a key."""
    owner: str = ""
    """`SkippingIndex/name` of the resource that declares it; else empty."""
    properties: Properties = ()
    """What else was said."""


def declaration_of_statement(statement: CreateIndex) -> Declaration:
    """What a statement declares.

    Raises:
        IndexNotPossible: two properties contradict each other.
    """
    said = dict(statement.properties)
    return Declaration(
        indexes=statement.indexes,
        where=statement.where,
        mode=mode_of(said, "AUTO"),
        enabled=said.get("enabled", "true") == "true",
        form=said.get("form", "NATIVE"),
        location=said.get("location", ""),
        footer_key_label=said.get("footer_key_label", ""),
        plaintext_footer=said.get("plaintext_footer") == "true",
        properties=other_properties(statement.properties),
    )


def mode_of(properties: Mapping[str, str], default: str) -> str:
    """The refresh mode that properties ask for, under our name or the peer's.

    Raises:
        IndexNotPossible: they ask for two.
    """
    asked = {
        "AUTO": properties.get("auto_refresh") == "true",
        "INCREMENTAL": properties.get("incremental_refresh") == "true",
    }
    modes = {mode for mode, is_asked in asked.items() if is_asked}
    if "refresh_mode" in properties:
        modes.add(properties["refresh_mode"])
    if len(modes) > 1:
        raise IndexNotPossible(
            "the properties ask for two modes of refresh",
            found=" and ".join(sorted(modes)),
            expected="one of refresh_mode, auto_refresh and incremental_refresh",
        )
    return modes.pop() if modes else default


def other_properties(properties: Properties) -> Properties:
    """What a declaration has no field for."""
    return tuple((name, value) for name, value in properties if name not in OWN_PROPERTIES)


def declaration_of_resource(resource: SkippingIndex) -> Declaration:
    """What a resource declares; it owns the index (ruling D38)."""
    spec, parquet = resource.spec, resource.spec.store.parquet
    encryption = spec.encryption
    return Declaration(
        indexes=tuple(map(_declared, spec.indexes)),
        where=spec.where or "",
        mode=spec.refresh.mode.value,
        enabled=spec.enabled,
        form="OPENSEARCH" if parquet is None else parquet.form.value,
        location="" if parquet is None else parquet.location,
        open_search=spec.store.open_search,
        footer_key_label="" if encryption is None else encryption.footer_key_label,
        plaintext_footer=encryption is not None and encryption.plaintext_footer,
        owner=resource.identity,
    )


def _declared(index: Index) -> DeclaredIndex:
    column = () if index.column is None else (index.column,)
    return DeclaredIndex(
        type=index.type,
        columns=index.columns or column,
        expression=index.expression or "",
        parameters=tuple(sorted(index.parameters.items())),
        key_label=index.key_label or "",
    )
