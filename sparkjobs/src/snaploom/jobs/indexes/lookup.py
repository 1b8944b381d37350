"""Finding the store of an index without Spark: by the path, or by the table's name."""

from __future__ import annotations

import re

from snaploom.errors import IndexNotFound, IndexNotPossible, IndexUnreadable
from snaploom.jobs.indexes.indexrequests import IndexedPlace
from snaploom.planning.hadoopuris import hadoop_uri
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.formats.keys import ParquetKeys
from snaploom.skipping.formats.keyservices import SETTING, open_keys
from snaploom.skipping.lifecycle.description import is_there
from snaploom.skipping.statements.syntax import PathName, TableName
from snaploom.skipping.stores.bases import IndexBase, open_base
from snaploom.skipping.stores.port import IndexStore
from snaploom.storage.stores import StoreOpener

_LOCAL = re.compile("(?:file:)?/+")


def find_index(place: IndexedPlace, others: StoreOpener | None = None) -> IndexStore:
    """The store of the index of a path or table; of one that was dropped as well.

    Args:
        place: what is indexed, and where.
        others: opens folders that only Hadoop's client knows.

    Raises:
        IndexNotFound: nothing is known about it there.
        IndexNotPossible: the name stands for several tables.
    """
    base = open_base(place.store.location, keys_of(place), others)
    if isinstance(place.subject, PathName):
        store = base.index(hadoop_path(place.subject.path))
        if is_there(store):
            return store
    else:
        stores = _of_table(base, place.subject)
        if stores:
            return stores[0]
    raise IndexNotFound(
        "there is no skipping index",
        found=f"nothing about {place.subject.label} in {base.uri}",
        hint="create it, or name another location; `snaploom index list` shows what is there",
    )


def keys_of(place: IndexedPlace) -> ParquetKeys | None:
    """Keys of the service that the settings name."""
    spark = place.run.spark
    settings = {**({} if spark is None else spark.spark_conf), **dict(place.settings)}
    return open_keys(settings.get(SETTING, ""))


def hadoop_path(path: str) -> str:
    """A path as Hadoop spells it: local ones with their scheme, and no slash at the end."""
    trimmed = path.rstrip("/")
    if _LOCAL.match(trimmed):
        return _LOCAL.sub("file:/", trimmed, count=1)
    return hadoop_uri(trimmed) or "file:/"


def _definition(store: IndexStore) -> SkippingDefinition | None:
    """The declaration; None where it is damaged, which may well be about another table."""
    try:
        return store.read().definition
    except IndexUnreadable:
        return None


def _of_table(base: IndexBase, name: TableName) -> list[IndexStore]:
    wanted = [part.casefold() for part in name.parts]
    found = {}
    for store in base.indexes():
        definition = _definition(store)
        table = "" if definition is None else definition.target.table
        if table.casefold().split(".")[-len(wanted) :] == wanted:
            found[table] = store
    if len(found) > 1:
        raise IndexNotPossible(
            "several indexed tables have this name",
            found=", ".join(sorted(found)),
            expected="one of them",
            hint="name the database, or the catalog too",
        )
    return list(found.values())
