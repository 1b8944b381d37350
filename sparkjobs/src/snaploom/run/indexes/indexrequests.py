"""Requests about skipping indexes, with their targets and stores; without Spark."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from pydantic import JsonValue

from snaploom import errors
from snaploom.engine.publishedfiles import FORMAT_NAMES, READ_OPTIONS
from snaploom.files.stores import StoreOpener
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.datasource import DataSource
from snaploom.models.findings import refuse
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.run import RunSettings
from snaploom.models.skippingindex import RefreshMode, RefreshTrigger, SkippingIndex
from snaploom.output import layout
from snaploom.plan.bundle import Bundle
from snaploom.policy.addresses import hadoop_uri
from snaploom.run.declarations import Declarations
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.formats.parquetfiles import SETTING, ParquetKeys, open_keys
from snaploom.skipping.lifecycle.declaration import Declaration
from snaploom.skipping.lifecycle.description import Description, is_there
from snaploom.skipping.statements import syntax
from snaploom.skipping.statements.syntax import parse_subject
from snaploom.skipping.stores.catalog import IndexBase, open_base
from snaploom.skipping.stores.port import IndexStore
from snaploom.sources.registry import declared

# Requests about skipping indexes: data only, so that nothing here needs Spark.


class IndexAction(StrEnum):
    """Action on an index."""

    CREATE = "CREATE"
    """Create it; nothing is indexed yet."""
    BUILD = "BUILD"
    """Create it unless it exists, and refresh it."""
    REFRESH = "REFRESH"
    """Bring it up to date."""
    APPLY = "APPLY"
    """Make it what a resource declares, and refresh it."""
    PLAN = "PLAN"
    """Show what APPLY would do."""
    IMPORT = "IMPORT"
    """Make it from a metadata store of others."""
    DELETE = "DELETE"
    """Drop it, and remove its files."""
    DESCRIBE = "DESCRIBE"
    """Describe it, its coverage of the target and its condition."""


@dataclass(frozen=True)
class IndexedPlace:
    """Indexed files, and the place of their index."""

    subject: syntax.Subject
    store: syntax.StorePlace
    declaration: Declaration | None = None
    settings: syntax.Properties = ()
    """Settings of the Spark session, which win over those of `run`."""
    run: RunSettings = field(default_factory=RunSettings)
    allow: Allowances = NO_ALLOWANCES
    """Entries that declarations may use beyond the built-in lists."""

    @property
    def owner(self) -> str:
        """`SkippingIndex/name` of the resource; empty for none."""
        return "" if self.declaration is None else self.declaration.owner

    @property
    def label(self) -> str:
        """For people: the resource, or what is indexed."""
        return self.owner or self.subject.label


@dataclass(frozen=True)
class IndexRequest:
    """One thing to do."""

    action: IndexAction
    place: IndexedPlace
    mode: RefreshMode | None = None
    """Mode of a refresh; None for the declared one."""
    ignore_if_exists: bool = False
    directory: str = ""
    """Folder of the metadata store to import; empty for the one that properties name."""
    is_trusted: bool = False
    """Whether the values of rows are believed, without comparing them with the files."""


@dataclass(frozen=True)
class IndexReport:
    """Result of a request."""

    label: str
    done: tuple[str, ...]
    """Changes, made or (PLAN) planned, in a few words each; empty without any."""
    description: Description
    warnings: tuple[str, ...] = ()
    """Warnings for people; they stop nothing."""


@dataclass(frozen=True)
class Explained:
    """Effect of skipping on a query."""

    text: str
    document: JsonValue
    """For programs: each relation of files in the query."""

    def __str__(self) -> str:
        return self.text


# Finding the store of an index without Spark: by the path, or by the table's name.

_LOCAL = re.compile("(?:file:)?/+")


def find_index(place: IndexedPlace, others: StoreOpener | None = None) -> IndexStore:
    """The store of the index of a path or table; of one that was dropped as well.

    Raises:
        IndexNotFound: nothing is known about it there.
        IndexNotPossible: the name stands for several tables.
    """
    base = open_base(place.store.location, keys_of(place), others)
    if isinstance(place.subject, syntax.PathName):
        store = base.index(hadoop_path(place.subject.path))
        if is_there(store):
            return store
    else:
        stores = _of_table(base, place.subject)
        if stores:
            return stores[0]
    raise errors.IndexNotFound(
        "there is no skipping index", found=f"nothing about {place.subject.label} in {base.uri}"
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
    except errors.IndexUnreadable:
        return None


def _of_table(base: IndexBase, name: syntax.TableName) -> list[IndexStore]:
    wanted = [part.casefold() for part in name.parts]
    found = {}
    for store in base.indexes():
        definition = _definition(store)
        table = "" if definition is None else definition.target.table
        if table.casefold().split(".")[-len(wanted) :] == wanted:
            found[table] = store
    if len(found) > 1:
        raise errors.IndexNotPossible(
            "several indexed tables have this name",
            found=", ".join(sorted(found)),
            expected="one of them",
            hint="name the database, or the catalog too",
        )
    return list(found.values())


# From a SkippingIndex to its files and the place of the index; without Spark.

_WILDCARD = re.compile(r"[{}\[\]*?\\]")


def index_names(declarations: Declarations) -> tuple[str, ...]:
    """Names of the SkippingIndexes that files declare."""
    return tuple(r.name for r in declarations.resources if isinstance(r, SkippingIndex))


def place_of_resource(
    declarations: Declarations, name: str, settings: syntax.Properties = ()
) -> IndexedPlace:
    """Files and place of a SkippingIndex.

    Raises:
        TargetNotIndexable: what it refers to has no files of its own.
    """
    bundle = declarations.bundle(name, SkippingIndex.__name__)
    refuse(declarations.findings_for(bundle))
    return place_of_bundle(bundle, settings, declarations.allow)


def place_of_bundle(
    bundle: Bundle, settings: syntax.Properties = (), allow: Allowances = NO_ALLOWANCES
) -> IndexedPlace:
    """Files and place of the SkippingIndex of a Bundle.

    Raises:
        TargetNotIndexable: what it refers to has no files of its own.
    """
    index = bundle.index
    return IndexedPlace(
        subject=_subject(index, bundle),
        store=syntax.place_of_store(index),
        declaration=syntax.declaration_of_resource(index),
        settings=settings,
        run=index.spec.run,
        allow=allow,
    )


def indexes_on_publish(declarations: Declarations, output: str) -> tuple[str, ...]:
    """Names of the enabled indexes that follow the publications of an output."""
    return tuple(
        resource.name
        for resource in declarations.resources
        if isinstance(resource, SkippingIndex)
        and resource.spec.refresh.trigger is RefreshTrigger.ON_PUBLISH
        and resource.spec.target.output_dataset == output
    )


def places_on_publish(
    declarations: Declarations, output: str, warn: Callable[[str], None]
) -> tuple[IndexedPlace, ...]:
    """Files and places of the indexes that follow an output; a fault of one stops no run."""
    places = []
    for name in indexes_on_publish(declarations, output):
        try:
            places.append(place_of_resource(declarations, name))
        except errors.SnaploomError as error:
            warn(f"SkippingIndex/{name} will not be refreshed: {error.message}")
    return tuple(places)


def _subject(index: SkippingIndex, bundle: Bundle) -> syntax.Subject:
    target = index.spec.target
    if target.path is not None:
        path = target.path
        return syntax.PathName(
            path.format, path.uri.rstrip("/") or "/", _pairs(path.options.items())
        )
    if target.table is not None:
        return parse_subject(target.table.name)
    if target.data_source is not None:
        return _of_source(index, bundle.source(target.data_source))
    return published_files(bundle.target_output)


def published_files(output: OutputDataset) -> syntax.PathName:
    """The published files of an output.

    Files that are staged hide from Spark behind a dot; those of crashed runs are indexed in vain.
    """
    folder = output.spec.output_folder
    uri = f"{folder.folder_uri.rstrip('/')}/{layout.DATA.rstrip('/')}"
    options = READ_OPTIONS[folder.data_format]
    return syntax.PathName(FORMAT_NAMES[folder.data_format], uri, _pairs(options.items()))


def _of_source(index: SkippingIndex, source: DataSource) -> syntax.PathName:
    files = declared(source).files
    if files is None:
        raise errors.TargetNotIndexable(
            "only files can be indexed, and this source has none of its own",
            resource=index.identity,
            path="spec.target.dataSource",
            found=f"{source.name}, which is {DataSource.variant_of(source.spec)}",
            expected="a source that is hdfsLike",
        )
    folders = {_fixed(glob) for glob in files.globs}
    if len(folders) > 1:
        raise errors.TargetNotIndexable(
            "the files of this source begin in several folders",
            resource=index.identity,
            path="spec.target.dataSource",
            found=f"{source.name}: {', '.join(sorted(folders))}",
            expected="globs that begin in one folder",
            hint="declare one index for each, with target.path",
        )
    folder = folders.pop()
    return syntax.PathName(files.format, folder, _pairs(files.format_options.items()))


def _fixed(glob: str) -> str:
    """A glob up to the last slash before its first wildcard; all of it when it has none."""
    wildcard = _WILDCARD.search(glob)
    if wildcard is None:
        return glob.rstrip("/") or "/"
    return glob[: glob.rfind("/", 0, wildcard.start())] or "/"


def _pairs(items: Iterable[tuple[str, str]]) -> syntax.Properties:
    return tuple(sorted(items))
