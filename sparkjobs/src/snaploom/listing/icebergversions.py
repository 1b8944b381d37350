"""Checks whether an Iceberg table has a version, by the metadata document in its folder.

That is all that has to be known of a table that is read as of now. Only tables of Iceberg's Hadoop
kind are answered for, whose newest version is `metadata/v<N>.metadata.json` behind a hint: one that
a catalog knows, and whatever is odd in a folder, is left to Iceberg's own library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import JsonValue

from snaploom.listing.otherfiles import OtherFiles, SparkNeeded
from snaploom.planning.hadoopuris import hadoop_uri
from snaploom.planning.intervals import READ_TIME, SourceSnapshots
from snaploom.planning.sources.tables.source import TableSource
from snaploom.storage.documentparser import HINT, TABLE_VERSION, get_bounded, parse_object
from snaploom.storage.objectstore import STORE_FAILURES, ObjectStore
from snaploom.storage.stores import open_store

_PLACE = re.compile(r"[a-z][a-z0-9+.-]*:/.*[^/]/*", re.DOTALL)
_LOCAL = "file:"
_VERSION = "metadata/v{}.metadata.json"
_COMPRESSED = ("metadata/v{}.gz.metadata.json", "metadata/v{}.metadata.json.gz")
_HINTED = re.compile(rb"([1-9][0-9]{0,17})\s*")
_NONE = -1
"""Iceberg's snapshot id for "no snapshot"."""


def iceberg_snapshots(source: TableSource, others: OtherFiles) -> SourceSnapshots | None:
    """Snapshots of a table; None, or `SparkNeeded`, where only Spark can enumerate them."""
    place = hadoop_uri(source.globs[0])
    if source.format != "iceberg" or not source.is_read_now or not _PLACE.fullmatch(place):
        return None
    try:
        is_local = place.startswith(_LOCAL)
        store = open_store(place, create=False) if is_local else others.store(place, False)
        return READ_TIME if _has_snapshot(_newest(store)) else SourceSnapshots()
    except (ValueError, *STORE_FAILURES) as error:
        raise SparkNeeded(f"{place}: {error}") from error


def _newest(store: ObjectStore) -> Mapping[str, JsonValue]:
    hint = _HINTED.fullmatch(get_bounded(store, "metadata/version-hint.text", HINT))
    if hint is None:
        raise ValueError("the hint is no number")
    number = int(hint[1])
    while store.head(_VERSION.format(number + 1)) is not None:
        number += 1
    for version in (number, number + 1):
        if any(store.head(form.format(version)) is not None for form in _COMPRESSED):
            raise ValueError("a version is compressed")
    key = _VERSION.format(number)
    document = get_bounded(store, key, TABLE_VERSION)
    return parse_object(document, f"{store.uri}{key}", TABLE_VERSION)


def _has_snapshot(document: Mapping[str, JsonValue]) -> bool:
    refs, current = document.get("refs"), document.get("current-snapshot-id", _NONE)
    if "format-version" not in document or not isinstance(current, int | None):
        raise ValueError("no metadata of a table")
    has_current = current not in (None, _NONE)
    if refs is None:
        return has_current
    if not isinstance(refs, dict) or ("main" in refs) is not has_current:
        raise ValueError("the branches of the table contradict its current snapshot")
    return has_current
