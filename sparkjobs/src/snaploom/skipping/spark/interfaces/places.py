"""Locations and keys of the indexes of a session, and the forms they allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from snaploom.errors import IndexNotFound, IndexNotPossible, KeyUnavailable, SkippingError
from snaploom.skipping.formats.keys import ParquetKeys
from snaploom.skipping.formats.keyservices import SETTING as KEY_SERVICE
from snaploom.skipping.formats.keyservices import open_keys
from snaploom.skipping.lifecycle.declaration import Declaration
from snaploom.skipping.lifecycle.forms import NATIVE, OPEN_SEARCH
from snaploom.skipping.spark.optimizer.settings import LOCATIONS, locations_in
from snaploom.skipping.stores.address import is_opensearch

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
