"""The one engine behind all interfaces: SQL, Python, the command line and resources.

Here a name becomes a target and a store; the lifecycle acts on them. Interfaces add
nothing but their own spelling.
"""

import os
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from snaploom import errors
from snaploom.files.stores import open_store
from snaploom.models.allowances import Allowances
from snaploom.models.skippingindex import RefreshMode
from snaploom.policy.formatfaults import require_format, target_place
from snaploom.skipping.formats.parquetfiles import ParquetKeys
from snaploom.skipping.lifecycle import operations
from snaploom.skipping.lifecycle.alteration import Alteration, alter
from snaploom.skipping.lifecycle.declaration import (
    NATIVE,
    OPEN_SEARCH,
    WITHOUT_OTHERS,
    Declaration,
    Progress,
    refuse_problems,
)
from snaploom.skipping.lifecycle.description import Description, describe, is_there, list_indexes
from snaploom.skipping.lifecycle.interchange import ImportResult, Written, interchange
from snaploom.skipping.lifecycle.operations import RefreshResult, require_owner, silent
from snaploom.skipping.spark.interfaces import declaredindex
from snaploom.skipping.spark.targets.sparktarget import SparkTarget
from snaploom.skipping.spark.targets.targetfiles import file_listing_of
from snaploom.skipping.spark.targets.targetlookup import open_path, open_table, warn_of_unasked
from snaploom.skipping.statements.columns import name_text
from snaploom.skipping.statements.syntax import PathName, StorePlace, Subject, TableName
from snaploom.skipping.stores.catalog import LOCATIONS, FolderBase, IndexBase, open_base
from snaploom.skipping.stores.folder import is_opensearch
from snaploom.skipping.stores.port import NEVER, IndexStore, StoredState
from snaploom.skipping.stores.usage import Recorded, recorded_usage
from snaploom.spark.hadoopstore import hadoop_stores
from snaploom.spark.jvm import qualified_uri


@dataclass(frozen=True)
class SkippingIndexes:
    """The skipping indexes that a session can reach.

    Args:
        spark: the session with which files are read.
        location: folder below which indexes are kept; empty for the session's locations.
        acting_for: `SkippingIndex/name` of the resource on whose behalf it is done (rule S26).
        progress: called for files done while an index is built.
        allow: formats and options that may be read beyond the built-in ones; by default those of
            the environment, as in a session of a user.
    """

    spark: SparkSession
    location: str = ""
    acting_for: str = ""
    progress: Progress = silent
    allow: Allowances = field(default_factory=lambda: Allowances.from_environment(os.environ))

    def create(
        self,
        subject: Subject,
        declaration: Declaration,
        place: StorePlace | None = None,
        *,
        ignore_if_exists: bool = False,
    ) -> StoredState:
        """Declare an index; nothing is indexed before the first refresh."""
        where = place or StorePlace(self.location)
        target, declaration, store = self._declared(subject, declaration, where)
        warn_of_unasked(target, declaration.indexes)
        return operations.create(store, target, declaration, if_not_exists=ignore_if_exists)

    def refresh(self, subject: Subject, mode: RefreshMode | None = None) -> RefreshResult:
        """Bring an index up to date; every user may, not only the owner."""
        confirmed = self._confirmed(subject, mode)
        if confirmed is not None:
            return confirmed
        target = self.target(subject)
        store = self._store(target.target.uri, target.target.table)
        return operations.refresh(store, target, mode, progress=self.progress)

    def alter(self, subject: Subject, alteration: Alteration) -> StoredState:
        """Change the declaration of an index."""
        target = self.target(subject)
        store = self._store(target.target.uri, target.target.table)
        warn_of_unasked(target, alteration.add)
        return alter(store, target, alteration, acting_for=self.acting_for, progress=self.progress)

    def plan(
        self, subject: Subject, declaration: Declaration, place: StorePlace
    ) -> declaredindex.Application:
        """Plan `apply`."""
        target, declaration, store = self._declared(subject, declaration, place)
        return declaredindex.plan_application(store, target, declaration)

    def apply(
        self, subject: Subject, declaration: Declaration, place: StorePlace
    ) -> declaredindex.Application:
        """Bring an index to its declaration, and refresh stale rows; returns the steps done."""
        target, declaration, store = self._declared(subject, declaration, place)
        warn_of_unasked(target, declaration.indexes)
        application = declaredindex.plan_application(store, target, declaration)
        declaredindex.apply(store, target, application, self.progress)
        return application

    def describe(
        self, subject: Subject, place: StorePlace | None = None, *, is_counted: bool = True
    ) -> Description:
        """Describe an index; damage is reported, not raised.

        Args:
            subject: table or path of the index.
            place: location of the index; omitted, the existing one.
            is_counted: whether the files are listed, to count those that the index covers.
        """
        if not is_counted:
            named = None if place is None else self._new_store(self.uri(subject), place)
            return describe(named or self._of(subject))
        target = self.target(subject)
        uri, table = target.target.uri, target.target.table
        store = self._store(uri, table) if place is None else self._new_store(uri, place)
        try:
            definition = store.read().definition
        except errors.IndexUnreadable:
            return describe(store)
        return describe(store, None if definition is None else target.list_files(definition.where))

    def list(self) -> list[Description]:
        """Every index below the session's locations that is not dropped; no files are listed."""
        return list_indexes(self._base(location) for location in self.locations)

    def usage(self, subject: Subject) -> Recorded | None:
        """Usage of an index by queries; None where the store keeps none (OpenSearch)."""
        return recorded_usage(self._of(subject))

    def drop(self, subject: Subject) -> StoredState:
        """Delete an index; `vacuum` removes its files."""
        return operations.drop(self._of(subject), acting_for=self.acting_for)

    def vacuum(self, subject: Subject) -> StoredState:
        """Remove the files of an index that was dropped."""
        return operations.vacuum(self._of(subject), acting_for=self.acting_for)

    def recover(self, subject: Subject) -> StoredState:
        """Clean up after an operation that failed or died."""
        return operations.recover(self._of(subject))

    def compact(self, subject: Subject) -> StoredState:
        """Rewrite the small pieces of an index as one."""
        return operations.compact(self._of(subject))

    def export(self, subject: Subject, directory: str) -> Written:
        """Write an index as a metadata store of version 4; replaces one of the same table."""
        exchanged = interchange()
        folder = open_store(directory, create=True, others=hadoop_stores(self.spark))
        return exchanged.export(self._of(subject), folder, self.keys)

    def import_(
        self,
        subject: Subject,
        directory: str = "",
        place: StorePlace | None = None,
        *,
        is_trusted: bool = False,
    ) -> ImportResult:
        """Make a new index from a metadata store of version 0 to 4.

        Args:
            subject: table or path of the metadata.
            directory: URI or path of the folder of the store, or of the folder with those of many
                tables; omitted, the one that properties of the table or its database name.
            place: location of the index; by default below the session's first location.
            is_trusted: whether values are believed; without, each row is compared with its file.
        """
        target = self.target(subject)
        found = declaredindex.find_metadata(
            self.spark, target.target, directory, is_trusted=is_trusted, progress=self.progress
        )
        where = place or StorePlace(self.location)
        if is_opensearch(self._location(where)) or where.form != NATIVE:
            raise errors.IndexNotPossible(
                "metadata are imported into the form NATIVE",
                found=where.form if where.form != NATIVE else OPEN_SEARCH,
                expected="a folder, and the form NATIVE",
                hint="leave out the form, or name NATIVE",
            )
        store = self._new_store(target.target.uri, where)
        state = store.read()
        if state.definition is not None and state.exists:
            require_owner(state.definition, self.acting_for)
        return found(store, target)

    def target(self, subject: Subject) -> SparkTarget:
        """Files that a subject names."""
        if isinstance(subject, TableName):
            return open_table(self.spark, ".".join(map(name_text, subject.parts)))
        file_format, options = self._readable(subject)
        return open_path(self.spark, subject.path, file_format, options)

    def _readable(self, subject: PathName) -> tuple[str, dict[str, str]]:
        options = dict(subject.options)
        place = target_place(self.acting_for)
        return require_format(subject.format, options, self.allow, place), options

    def _confirmed(self, subject: Subject, mode: RefreshMode | None) -> RefreshResult | None:
        if isinstance(subject, TableName) or mode is RefreshMode.FULL:
            return None
        uri = self.uri(subject)
        try:
            store = self._store(uri)
        except errors.IndexNotFound:
            return None  # the path may be a pattern
        if store.read().refreshed_at == NEVER:
            return None
        file_format, options = self._readable(subject)
        listing = file_listing_of(self.spark, subject.path, uri, file_format, options)
        return None if listing is None else operations.confirm(store, listing, mode)

    def uri(self, subject: Subject) -> str:
        """Location of a subject's files; a path is not read, since it may be gone."""
        if isinstance(subject, TableName):
            return self.target(subject).target.uri
        return qualified_uri(self.spark, subject.path)

    @property
    def locations(self) -> tuple[str, ...]:
        """Folders that may have indexes."""
        if self.location:
            return (self.location,)
        return declaredindex.known_locations(self.spark)

    @property
    def keys(self) -> ParquetKeys | None:
        """Keys of encrypted indexes: as given to `enable`, else of the session's setting."""
        return declaredindex.known_keys(self.spark)

    def _base(self, location: str) -> IndexBase:
        return open_base(location, self.keys, hadoop_stores(self.spark))

    def _declared(
        self, subject: Subject, declaration: Declaration, place: StorePlace
    ) -> tuple[SparkTarget, Declaration, IndexStore]:
        target = self.target(subject)
        location = self._location(place)
        placed = declaredindex.in_place(declaration, location)
        declaredindex.refuse_keyless(placed, self.keys)
        base = self._base(location)
        if placed.form not in WITHOUT_OTHERS and not isinstance(base, FolderBase):
            raise errors.IndexNotPossible(
                f"the form {placed.form} is one of folders",
                found=base.uri,
                expected="a folder",
                hint="name a folder as the location",
            )
        refuse_problems(placed, target)
        return target, placed, base.index(target.target.uri)

    def _of(self, subject: Subject) -> IndexStore:
        if isinstance(subject, TableName):
            target = self.target(subject).target
            return self._store(target.uri, target.table)
        return self._store(self.uri(subject))

    def _new_store(self, uri: str, place: StorePlace) -> IndexStore:
        return self._base(self._location(place)).index(uri)

    def _location(self, place: StorePlace) -> str:
        location = place.location or next(iter(self.locations), "")
        if not location:
            raise declaredindex.nowhere()
        return location

    def _store(self, uri: str, table: str = "") -> IndexStore:
        """Store of an existing or former index of a target.

        It is found in the session's locations, else by table properties; raises `IndexNotFound`.
        """
        locations = self.locations
        for location in locations:
            store = self._base(location).index(uri)
            if is_there(store):
                return store
        of_properties = declaredindex.base_of_properties(self.spark, table) if table else ""
        # A user who may alter a table names a folder by this, and no server that is asked.
        if of_properties and not is_opensearch(of_properties):
            locations = (*locations, of_properties)
            store = self._base(of_properties).index(uri)
            if is_there(store):
                return store
        if not locations:
            raise declaredindex.nowhere()
        raise errors.IndexNotFound(
            "there is no skipping index",
            found=f"nothing about {uri} in {', '.join(locations)}",
            hint=f"create it, or name its folder in {LOCATIONS}",
        )
