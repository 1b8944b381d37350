"""From a SkippingIndex to its files and the place of the index; without Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from snaploom.engine.formats import FORMAT_NAMES, READ_OPTIONS
from snaploom.errors import SnaploomError, TargetNotIndexable
from snaploom.jobs.declarations.declarationfiles import Declarations, refuse
from snaploom.jobs.indexes.indexrequests import IndexedPlace
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.datasource import DataSource, HdfsLike
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.skippingindex import RefreshTrigger, SkippingIndex
from snaploom.planning.bundle import Bundle
from snaploom.planning.sources.registry import declared
from snaploom.skipping.statements.declaration import declaration_of_resource, place_of_store
from snaploom.skipping.statements.parser import parse_subject
from snaploom.skipping.statements.syntax import PathName, Properties, Subject
from snaploom.storage import layout

_WILDCARD = re.compile(r"[{}\[\]*?\\]")


def index_names(declarations: Declarations) -> tuple[str, ...]:
    """Names of the SkippingIndexes that files declare."""
    return tuple(r.name for r in declarations.resources if isinstance(r, SkippingIndex))


def place_of_resource(
    declarations: Declarations, name: str, settings: Properties = ()
) -> IndexedPlace:
    """Files and place of a SkippingIndex.

    Args:
        declarations: where it and what it refers to are.
        name: of the SkippingIndex.
        settings: of the Spark session, which win over those of `run.spark`.

    Raises:
        InvalidDeclarations: there is none, or something is wrong with it; with every finding.
        TargetNotIndexable: what it refers to has no files of its own.
    """
    bundle = declarations.bundle(name, SkippingIndex.__name__)
    refuse(declarations.findings_for(bundle))
    return place_of_bundle(bundle, settings, declarations.allow)


def place_of_bundle(
    bundle: Bundle, settings: Properties = (), allow: Allowances = NO_ALLOWANCES
) -> IndexedPlace:
    """Files and place of the SkippingIndex of a Bundle.

    Args:
        bundle: of an index about which nothing is wrong.
        settings: of the Spark session, which win over those of `run.spark`.
        allow: what it may use beyond the built-in lists.

    Raises:
        TargetNotIndexable: what it refers to has no files of its own.
    """
    index = bundle.index
    return IndexedPlace(
        subject=_subject(index, bundle),
        store=place_of_store(index),
        declaration=declaration_of_resource(index),
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
    """Files and places of the indexes that follow an output; a fault of one stops no run.

    Args:
        declarations: where they and what they refer to are.
        output: name of the OutputDataset.
        warn: takes a warning about each that is left out.
    """
    places = []
    for name in indexes_on_publish(declarations, output):
        try:
            places.append(place_of_resource(declarations, name))
        except SnaploomError as error:
            warn(f"SkippingIndex/{name} will not be refreshed: {error.message}")
    return tuple(places)


def _subject(index: SkippingIndex, bundle: Bundle) -> Subject:
    target = index.spec.target
    if target.path is not None:
        path = target.path
        return PathName(path.format, path.uri.rstrip("/") or "/", _pairs(path.options.items()))
    if target.table is not None:
        return parse_subject(target.table.name)
    if target.data_source is not None:
        return _of_source(index, bundle.source(target.data_source))
    return published_files(bundle.target_output)


def published_files(output: OutputDataset) -> PathName:
    """The published files of an output.

    Files that are staged hide from Spark behind a dot; those of crashed runs are indexed in vain.
    """
    folder = output.spec.output_folder
    uri = f"{folder.folder_uri.rstrip('/')}/{layout.DATA.rstrip('/')}"
    options = READ_OPTIONS[folder.data_format]
    return PathName(FORMAT_NAMES[folder.data_format], uri, _pairs(options.items()))


def _of_source(index: SkippingIndex, source: DataSource) -> PathName:
    files = declared(source).files
    if files is None:
        raise TargetNotIndexable(
            "only files can be indexed, and this source has none of its own",
            resource=index.identity,
            path="spec.target.dataSource",
            found=f"{source.name}, which is {DataSource.variant_of(source.spec)}",
            expected="a source that is hdfsLike",
            hint="index the sources that it reads",
        )
    folder = _folder(index, source, files)
    return PathName(files.format, folder, _pairs(files.format_options.items()))


def _folder(index: SkippingIndex, source: DataSource, files: HdfsLike) -> str:
    """The folder in which all globs of a source begin: what is below it is indexed."""
    folders = {_fixed(glob) for glob in files.source_uri_globs}
    if len(folders) > 1:
        raise TargetNotIndexable(
            "the files of this source begin in several folders",
            resource=index.identity,
            path="spec.target.dataSource",
            found=f"{source.name}: {', '.join(sorted(folders))}",
            expected="globs that begin in one folder",
            hint="declare one index for each, with target.path",
        )
    return folders.pop()


def _fixed(glob: str) -> str:
    """A glob up to the last slash before its first wildcard; all of it when it has none."""
    wildcard = _WILDCARD.search(glob)
    if wildcard is None:
        return glob.rstrip("/") or "/"
    return glob[: glob.rfind("/", 0, wildcard.start())] or "/"


def _pairs(items: Iterable[tuple[str, str]]) -> Properties:
    return tuple(sorted(items))
