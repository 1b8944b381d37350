"""Output folders with an Iceberg table, whose versions a stand-in for Iceberg's library makes."""

from __future__ import annotations

from collections.abc import Callable

from support.storage.folders import IDENTITY, SETTINGS, a_run, a_target, agrees, keys, writes
from support.storage.plainlibrary import PlainLibrary, files_of_table

from snaploom.files.objectstore import ObjectStore
from snaploom.output.folder import Folder, Run, open_folder, prepare_folder
from snaploom.output.publication import AlreadyPublished, Published, WriteResult, publish

TABLE = SETTINGS.model_copy(update={"data_format": "ICEBERG"})
SCHEMA = '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}'


def table_folder(
    store: ObjectStore, before: Callable[[], None] = lambda: None, run: Run | None = None
) -> Folder:
    """A folder to publish into; `before` is called before each change of the table is made."""
    library = PlainLibrary(store, before)
    return prepare_folder(store, TABLE, IDENTITY, run or a_run(), library=library)


def woven(folder: Folder) -> Callable[[str], WriteResult]:
    """A writer of files with a column."""

    def write(uri: str) -> WriteResult:
        return WriteResult(rows=writes(folder.store)(uri).rows, schema=SCHEMA)

    return write


def published_in_table(
    folder: Folder, number: int, run: Run | None = None
) -> Published | AlreadyPublished:
    """Publish the snapshot of a day."""
    return publish(folder, run or a_run(), a_target(number), woven(folder), agrees)


def is_whole(store: ObjectStore) -> bool:
    """Whether table and log list the same files, all of which exist."""
    state = open_folder(store).read()
    listed = {
        record.partition.partition("=")[2]: [file.path for file in record.files]
        for record in state.snapshots
    }
    there = set(keys(store, "data/"))
    return (
        listed == files_of_table(store) and {f for files in listed.values() for f in files} <= there
    )
