"""`snaploom index create`, `build`, `apply`, `refresh` and the others that change indexes."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated

from cyclopts import Parameter

from snaploom.cli import options
from snaploom.cli.console import OutputForm
from snaploom.cli.index.describe import show_reports
from snaploom.cli.index.options import (
    DEFAULT_PLACE,
    Conf,
    Items,
    Kms,
    PlaceOptions,
    Target,
    carry_out,
    declared_places,
    indexes_of,
    place_of,
    put_back_when_interrupted,
    settings_of,
)
from snaploom.files.stores import open_store
from snaploom.models.findings import InvalidDeclarations
from snaploom.models.skippingindex import ParquetForm, RefreshMode
from snaploom.run.folders import by_hadoop
from snaploom.run.indexes.indexrequests import (
    IndexAction,
    IndexedPlace,
    IndexReport,
    IndexRequest,
    find_index,
    keys_of,
)
from snaploom.skipping.lifecycle import operations
from snaploom.skipping.lifecycle.declaration import Declaration
from snaploom.skipping.lifecycle.description import describe
from snaploom.skipping.lifecycle.interchange import interchange
from snaploom.skipping.stores.port import IndexStore

# `snaploom index create` and `build`: creates a skipping index; `build` also fills it.


@Parameter(name="*")
@dataclass(frozen=True)
class KeptOptions:
    """Content of the index, and its form."""

    where: Annotated[
        str,
        Parameter(name="--where", help="SQL condition on partition columns that selects files."),
    ] = ""
    mode: Annotated[
        RefreshMode, Parameter(name="--mode", help="Scope of refreshes.", show_default=True)
    ] = RefreshMode.AUTO
    form: Annotated[
        ParquetForm, Parameter(name="--form", help="Form of the store.", show_default=True)
    ] = ParquetForm.NATIVE
    footer_key_label: Annotated[
        str,
        Parameter(
            name="--footer-key-label",
            help="Key of the footers of an encrypted index; keys of single indexes are their "
            "parameter: `'price MIN_MAX(key_label = prices)'`.",
        ),
    ] = ""
    plaintext_footer: Annotated[
        bool, Parameter(name="--plaintext-footer", help="Leave footers readable without a key.")
    ] = False
    if_not_exists: Annotated[
        bool, Parameter(name="--if-not-exists", help="Succeed if the index already exists.")
    ] = False


DEFAULT_KEPT = KeptOptions()


def create(
    target: Target,
    /,
    *,
    index: Items = (),
    kept: KeptOptions = DEFAULT_KEPT,
    place: PlaceOptions = DEFAULT_PLACE,
    output: options.Form = OutputForm.TEXT,
) -> int:
    """Create a skipping index; nothing is indexed before the first refresh."""
    return _declare(IndexAction.CREATE, target, index, kept, place, output)


def build(
    target: Target,
    /,
    *,
    index: Items = (),
    kept: KeptOptions = DEFAULT_KEPT,
    place: PlaceOptions = DEFAULT_PLACE,
    output: options.Form = OutputForm.TEXT,
) -> int:
    """Create a skipping index and index all files."""
    return _declare(IndexAction.BUILD, target, index, kept, place, output)


def _declare(
    action: IndexAction,
    target: str,
    items: tuple[str, ...],
    kept: KeptOptions,
    options: PlaceOptions,
    form: OutputForm,
) -> int:
    place = place_of(target, options)
    declared = replace(place, declaration=_declaration(place, items, kept))
    request = IndexRequest(action, declared, ignore_if_exists=kept.if_not_exists)
    show_reports(carry_out([request]), form)
    return 0


def _declaration(place: IndexedPlace, items: tuple[str, ...], kept: KeptOptions) -> Declaration:
    if place.declaration is None:
        if not items:
            raise options.refuse_request(
                "no index type is given",
                "--index",
                expected="one --index or more, such as --index 'price MIN_MAX'",
            )
        return Declaration(
            indexes=indexes_of(items),
            where=kept.where,
            mode=kept.mode,
            form=kept.form.value,
            footer_key_label=kept.footer_key_label,
            plaintext_footer=kept.plaintext_footer,
        )
    if items or kept != KeptOptions(if_not_exists=kept.if_not_exists):
        raise options.refuse_request(
            "what to keep is declared already",
            "--index",
            found=f"{place.declaration.owner}, and options that repeat it",
            expected="one of the two",
            hint="change the declaration, or leave -f out",
        )
    return place.declaration


# `snaploom index apply`: applies SkippingIndex declarations.


def apply(
    names: Annotated[
        tuple[str, ...],
        Parameter(name="INDEX", help="Names of SkippingIndexes; omitted, all."),
    ] = (),
    /,
    *,
    file: options.Files,
    project: options.ProjectOptions = options.DEFAULT_PROJECT,
    conf: Conf = (),
    kms: Kms = None,
    allow: options.Allow = (),
    dry_run: Annotated[bool, Parameter(help="Only show what would be done.")] = False,
    output: options.Form = OutputForm.TEXT,
) -> int:
    """Create or alter indexes until they are as declared, and refresh them by `refresh.mode`.

    Applying the same declarations again changes nothing.
    """
    declarations = project.read(file, allow)
    places = declared_places(declarations, names, settings_of(conf, kms))
    action = IndexAction.PLAN if dry_run else IndexAction.APPLY
    try:
        show_reports(carry_out([IndexRequest(action, place) for place in places]), output)
    except InvalidDeclarations as error:
        raise InvalidDeclarations(declarations.placed(error.findings)) from error
    return 0


# `snaploom index refresh`, `drop`, `vacuum`, `recover` and `compact`.


def refresh(
    target: Target,
    /,
    *,
    mode: Annotated[
        RefreshMode | None,
        Parameter(name="--mode", help="Scope of the refresh; omitted, as declared."),
    ] = None,
    place: PlaceOptions = DEFAULT_PLACE,
    output: options.Form = OutputForm.TEXT,
) -> int:
    """Index new and changed files, and drop the rows of deleted files."""
    request = IndexRequest(IndexAction.REFRESH, place_of(target, place), mode=mode)
    show_reports(carry_out([request]), output)
    return 0


def _on_store(
    summary: str, done: str, act: Callable[[IndexStore, str], object]
) -> Callable[..., int]:
    """A command that does one thing to the store of an index, for its owner."""

    def command(
        target: Target,
        /,
        *,
        place: PlaceOptions = DEFAULT_PLACE,
        output: options.Form = OutputForm.TEXT,
    ) -> int:
        named = place_of(target, place)
        store = find_index(named, by_hadoop)
        with put_back_when_interrupted(named.label):
            act(store, named.owner)
        show_reports([IndexReport(named.label, (done,), describe(store))], output)
        return 0

    command.__doc__ = summary
    return command


drop = _on_store(
    "Delete a skipping index; its files stay until `vacuum`, and queries read every file.",
    "dropped",
    lambda store, owner: operations.drop(store, acting_for=owner),
)
vacuum = _on_store(
    "Remove the files of a skipping index that was dropped.",
    "its files are removed",
    lambda store, owner: operations.vacuum(store, acting_for=owner),
)
recover = _on_store(
    "Clean up after a failed operation, and check that the index rows can be read.",
    "recovered",
    lambda store, _: operations.recover(store),
)
compact = _on_store(
    "Merge small index segments into one; queries see the same rows.",
    "compacted",
    lambda store, _: operations.compact(store),
)


# `snaploom index export` and `import`: Xskipper metadata stores.

Directory = Annotated[
    str,
    Parameter(name="DIRECTORY", help="URI or absolute path of the folder of the metadata store."),
]


def export(
    target: Target,
    directory: Directory,
    /,
    *,
    place: PlaceOptions = DEFAULT_PLACE,
    output: options.Form = OutputForm.TEXT,
) -> int:
    """Export an index as an Xskipper metadata store, version 4; the index stays as it is."""
    named = place_of(target, place)
    store = find_index(named, by_hadoop)
    folder = open_store(options.folder_uri(directory), create=True, others=by_hadoop)
    with put_back_when_interrupted(named.label):
        written = interchange().export(store, folder, keys_of(named))
    left = f"; {written.left_out} have none there" if written.left_out else ""
    done = f"exported rows about {written.rows} files to {folder.uri}{left}"
    show_reports([IndexReport(named.label, (done,), describe(store))], output)
    return 0


def import_(
    target: Target,
    directory: Annotated[
        str | None,
        Parameter(
            name="DIRECTORY",
            help="Folder of the metadata store, or the one with those of many tables; omitted, "
            "the one that properties of the table or its database name.",
        ),
    ] = None,
    /,
    *,
    trust: Annotated[
        bool,
        Parameter(
            name="--trust",
            negative="",
            help="Believe the values of rows about files that are there as they were, by path and "
            "time of modification; omitted, each row is compared with its file, too.",
        ),
    ] = False,
    place: PlaceOptions = DEFAULT_PLACE,
    output: options.Form = OutputForm.TEXT,
) -> int:
    """Import an Xskipper metadata store of version 0 to 4 as a skipping index."""
    request = IndexRequest(
        IndexAction.IMPORT,
        place_of(target, place),
        directory="" if directory is None else options.folder_uri(directory),
        is_trusted=trust,
    )
    show_reports(carry_out([request]), output)
    return 0
