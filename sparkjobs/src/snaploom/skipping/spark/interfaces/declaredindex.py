"""Makes a skipping index what is declared, in the place where it is kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from snaploom.errors import IndexNotFound, IndexNotPossible, KeyUnavailable, SkippingError
from snaploom.files.stores import open_store
from snaploom.models.skippingindex import Index, RefreshMode
from snaploom.skipping.core.definition import IndexDefinition, SkippingDefinition, Target
from snaploom.skipping.formats.parquetfiles import SETTING as KEY_SERVICE
from snaploom.skipping.formats.parquetfiles import ParquetKeys, open_keys
from snaploom.skipping.lifecycle import operations
from snaploom.skipping.lifecycle.alteration import Alteration, alter
from snaploom.skipping.lifecycle.declaration import (
    NATIVE,
    OPEN_SEARCH,
    Declaration,
    IndexableTarget,
    Progress,
    define,
    plan_refresh,
)
from snaploom.skipping.lifecycle.interchange import (
    CatalogProperties,
    Import,
    interchange,
    registered_interchange,
)
from snaploom.skipping.lifecycle.operations import require_owner, silent
from snaploom.skipping.stores.catalog import LOCATIONS, locations_in
from snaploom.skipping.stores.folder import is_opensearch
from snaploom.skipping.stores.port import NEVER, IndexStore, StoredState
from snaploom.spark.hadoopstore import hadoop_stores

# Location of index metadata, by a named folder or by properties of a table.

_CATALOG = "spark_catalog."


def find_metadata(
    spark: SparkSession, target: Target, directory: str, *, is_trusted: bool, progress: Progress
) -> Import:
    """Find the metadata store of a target in a folder or, if that is empty, by properties."""
    known = interchange()
    is_named = directory or not target.table
    properties = (
        CatalogProperties() if is_named else _properties(spark, target.table, known.property_names)
    )
    opened = partial(open_store, create=False, others=hadoop_stores(spark))
    return known.find(
        target,
        directory,
        properties,
        opened,
        known_keys(spark),
        is_trusted=is_trusted,
        progress=progress,
    )


def base_of_properties(spark: SparkSession, table: str) -> str:
    """The folder of a table's indexes by properties; empty for none."""
    known = registered_interchange()
    return "" if known is None else known.base(_properties(spark, table, known.property_names))


def _properties(spark: SparkSession, table: str, names: Sequence[str]) -> CatalogProperties:
    state = spark._jsparkSession.sessionState()
    try:
        name = state.sqlParser().parseTableIdentifier(table.removeprefix(_CATALOG))
        metadata = state.catalog().getTableMetadata(name)
        database = state.catalog().getDatabaseMetadata(metadata.database())
        return CatalogProperties(
            _chosen(metadata.properties(), names), _chosen(database.properties(), names)
        )
    except (PySparkException, Py4JJavaError):
        return CatalogProperties()  # a table of another catalog, which has no such properties


def _chosen(properties: JavaObject, names: Sequence[str]) -> Mapping[str, str]:
    """Properties that name a location; reading all of them costs a call each."""
    found = {name: properties.get(name) for name in names}
    return {name: str(value.get()) for name, value in found.items() if value.isDefined()}


# Locations and keys of the indexes of a session, and the forms they allow.

_ENABLED: WeakKeyDictionary[SparkSession, tuple[tuple[str, ...], ParquetKeys | None]] = (
    WeakKeyDictionary()
)
"""Locations and keys that a session was given when skipping was enabled in it."""


def remember_locations(
    spark: SparkSession, locations: Sequence[str], keys: ParquetKeys | None
) -> None:
    """Let the interfaces of a session use the locations and keys of `enable`."""
    before, former_keys = _ENABLED.get(spark, ((), None))
    _ENABLED[spark] = (tuple(dict.fromkeys((*before, *locations))), keys or former_keys)


def forget_locations(spark: SparkSession) -> None:
    """Let the interfaces of a session use the locations of its settings only."""
    _ENABLED.pop(spark, None)


def known_locations(spark: SparkSession) -> tuple[str, ...]:
    """Folders that a session searches for indexes: those of `enable`, then its setting."""
    enabled, _ = _ENABLED.get(spark, ((), None))
    return tuple(dict.fromkeys((*enabled, *locations_in(spark.conf.get(LOCATIONS, "")))))


def known_keys(spark: SparkSession) -> ParquetKeys | None:
    """Keys of encrypted indexes: as given to `enable`, else of the session's setting."""
    _, keys = _ENABLED.get(spark, ((), None))
    return keys or open_keys(spark.conf.get(KEY_SERVICE, "") or "")


def in_place(declaration: Declaration, location: str) -> Declaration:
    """A declaration in the form of a location; `IndexNotPossible` for another form."""
    if is_opensearch(location) and declaration.form == NATIVE:
        return replace(declaration, form=OPEN_SEARCH)
    if is_opensearch(location) != (declaration.form == OPEN_SEARCH):
        raise IndexNotPossible(
            f"the form {declaration.form} is not one of this location",
            found=location.partition("?")[0],
            expected="opensearch://host:port for the form OPENSEARCH, a folder for all others",
            hint="choose a form of this location, or another location",
        )
    return declaration


def refuse_keyless(declaration: Declaration, keys: ParquetKeys | None) -> None:
    """Raise `KeyUnavailable` for encryption without a key management service."""
    labels = [index.key_label for index in declaration.indexes if index.key_label]
    if keys is None and (labels or declaration.footer_key_label):
        raise KeyUnavailable(
            "the index is to be encrypted, and no key management service is configured",
            found=f"key labels {', '.join(filter(None, (declaration.footer_key_label, *labels)))}",
            expected=f"the setting {KEY_SERVICE}, such as vault+https://vault:8200/v1/transit",
            hint=f"set {KEY_SERVICE}, or give keys to snaploom.skipping.enable",
        )


def nowhere() -> SkippingError:
    """Build the error of a session without locations."""
    return IndexNotFound(
        "the location of indexes is not set",
        found=f"{LOCATIONS} is not set",
        expected="the URI or path of a folder",
        hint=f"set {LOCATIONS}, or write WITH (location = '...')",
    )


# Brings a skipping index to its declaration: creates or alters it, and refreshes stale rows.


@dataclass(frozen=True)
class Application:
    """Steps that bring an index to its declaration."""

    declaration: Declaration
    is_new: bool
    alteration: Alteration | None
    refresh: RefreshMode | None
    """Mode of the necessary refresh; None when its rows and the files agree."""
    steps: tuple[str, ...]


def plan_application(
    store: IndexStore, target: IndexableTarget, declaration: Declaration
) -> Application:
    """Plan the steps without doing them."""
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
    """Carry out planned steps."""
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
    wanted = define(declaration, target, 1)
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
