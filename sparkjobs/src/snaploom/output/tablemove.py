"""The move of an output's Iceberg table from its folder to a catalog; all files stay in place.

1. The catalog takes the table in, by a copy of its newest metadata: the same snapshots, branches,
   tags and properties. One that fails has changed nothing.
2. The copy is put as the folder's next version, if absent, and so is its last: it names the
   catalog, and nobody puts another one after it (`icebergtable.refuse_moved`). A run by the old
   declaration has committed before, so that this put fails; or never will.
3. An entry of the log has the new setting, by which runs find the table.

What died in between is ended by doing it again, and two at once put the same last version.
"""

import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from pydantic import JsonValue

from snaploom.confidential import visible
from snaploom.errors import PublicationError
from snaploom.files.objectstore import ObjectStore
from snaploom.output import entries, icebergtable
from snaploom.output.documents import NEWEST_ENTRY, corrupt
from snaploom.output.folder import Run, inspect_folder, open_folder
from snaploom.output.history import NothingPublished
from snaploom.output.icebergtable import MOVED, IcebergTable, TableLibrary, TableVersion
from snaploom.output.outputtables import OF_CATALOG, CatalogedTable
from snaploom.output.state import FolderState
from snaploom.output.tablehistory import store_page


def move_table(
    store: ObjectStore,
    settings: entries.FolderSettings,
    identity: entries.FolderIdentity,
    run: Run,
    library: TableLibrary,
    *,
    open_names: AbstractSet[str] = frozenset(),
) -> FolderState:
    """Move the table of a folder to the catalog in `settings`; nothing is done where it is there.

    Raises:
        PublicationError: the catalog has another table of this name, or a run has committed since
            the catalog took it in; and as `inspect_folder`.
        NothingPublished: the folder has no table.
    """
    folder = open_folder(store, library)
    fixed = folder.log.read().settings
    name = settings.table
    assert name is not None  # the caller looked
    is_moved = fixed is not None and fixed.table is not None
    asked = settings if is_moved else settings.model_copy(update={"table": None})
    inspect_folder(store, asked, identity, open_names=open_names)
    if fixed is None:
        raise NothingPublished(
            f"{store.uri} has no table yet", found="none", expected="one that can be moved"
        )
    if not is_moved:
        folder.begin_table(fixed)
        # Entries that the log lacks are written while the folder's table still has their order.
        folder.read()
        changed = fixed.model_copy(update={"table": name})
        try:
            _move(store, name, library)
        except PublicationError:
            if folder.log.read().settings != changed:  # no other command was faster
                raise
        return folder.log.commit(lambda state: _entry(state, run, changed))
    return folder.log.read()


def _move(store: ObjectStore, name: str, library: TableLibrary) -> None:
    table = IcebergTable(store)
    version = table.read()
    if version is None:
        raise corrupt(store.uri, "no table, though one was begun")
    last = _last_document(store, version, name)
    content = json.dumps(last).encode()
    _register(CatalogedTable(store, library.of_catalog(name)), content, last)
    if MOVED not in version.properties and not table.append(version.number + 1, content):
        raise _behind(store, name, "a commit of a run meanwhile")


def _last_document(store: ObjectStore, version: TableVersion, name: str) -> Mapping[str, JsonValue]:
    """The last version in the folder, which is the first in the catalog."""
    begun = version.properties.get(MOVED)
    if begun is None:
        page = store_page(store, version, list(version.lineage()))
        named = {icebergtable.OWNER: store.uri, icebergtable.EARLIER: page, MOVED: name}
        properties: dict[str, JsonValue] = {**version.properties, **OF_CATALOG, **named}
        # The catalog removes old versions by this log: not the folder's, of which the last stays.
        return {**version.document, "properties": properties, "metadata-log": []}
    if begun != name:
        raise PublicationError(
            f"the move of the table of {store.uri} to {visible(begun)} has begun, and not ended",
            path="spec.outputFolder.table",
            found=name,
            expected=visible(begun),
            hint="declare the table to which it was begun, and move it again",
        )
    return version.document


def _register(table: CatalogedTable, content: bytes, last: Mapping[str, JsonValue]) -> None:
    store, name = table.store, table.table.name
    if table.read() is None:
        key = icebergtable.copy_key()
        store.put_if_absent(key, content)
        table.table.register(f"{store.uri}{key}")
    found, ours = table.read(), TableVersion(0, last).properties
    # By these properties a version in the catalog is that of the folder, and none before it.
    compared = (icebergtable.EARLIER, icebergtable.REVOKED, MOVED)
    if found is None or any(found.properties.get(key) != ours.get(key) for key in compared):
        raise _behind(store, name, "none" if found is None else "one with another history")


def _behind(store: ObjectStore, name: str, found: str) -> PublicationError:
    return PublicationError(
        f"the table {name} of the catalog is not as the one in {store.uri} is",
        path="spec.outputFolder.table",
        found=found,
        expected=f"no table {name}, or the one that this command has registered",
        hint="where no other command is moving it, take it out of the catalog, without its files "
        "(DROP TABLE, not PURGE), and run the command again while nothing publishes",
    )


def _entry(
    state: FolderState, run: Run, changed: entries.FolderSettings
) -> entries.Configure | None:
    if state.settings == changed:
        return None
    assert state.identity is not None  # it is configured
    return entries.Configure(
        **run.head(state), format=NEWEST_ENTRY, settings=changed, identity=state.identity
    )
