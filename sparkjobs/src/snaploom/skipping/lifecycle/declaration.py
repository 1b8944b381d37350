"""From what people declare to a definition, and to the plan of a refresh, made beforehand."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from snaploom.errors import IndexNotPossible, IndexUnreadable, SkippingError
from snaploom.models.skippingindex import Index, ParquetForm, RefreshMode
from snaploom.skipping.core.definition import (
    IndexDefinition,
    ReaderFingerprint,
    SkippingDefinition,
    Target,
    Term,
)
from snaploom.skipping.core.filetable import IDENTITY_FIELDS, FileTable, whole_column
from snaploom.skipping.indexes.base import index_type
from snaploom.skipping.stores.folder import registered_forms, store_form
from snaploom.skipping.stores.port import NEVER, IndexStore, StoredState

# Limits of store forms and of encryption, checked at declaration.

NATIVE, OPEN_SEARCH = ParquetForm.NATIVE.value, "OPENSEARCH"
FORMS = (*(form.value for form in ParquetForm), OPEN_SEARCH)
"""Forms of a store that can be declared."""
WITHOUT_OTHERS = (NATIVE, OPEN_SEARCH)
"""Forms that hold our own rows and nothing beside them."""


def parameters_in(
    form: str, index_type: str, parameters: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """Parameters as they are kept, with those that the form of the store adds."""
    found = registered_forms().get(form)
    known = parameters if found is None else found.parameters(index_type, parameters)
    return tuple(sorted(known.items()))


def require_form(form: str) -> None:
    """Raise `IndexNotPossible` for changes of an index whose form is not registered here."""
    if form in FORMS and form not in WITHOUT_OTHERS:
        store_form(form)


def check_form(definition: SkippingDefinition) -> None:
    """Raise `IndexNotPossible`, with all reasons, for what the form of the store cannot hold."""
    if definition.form not in FORMS:
        raise IndexNotPossible(
            "there is no such form of a store",
            found=definition.form,
            expected=", ".join(FORMS),
            hint="choose one of these forms",
        )
    labelled = [index.label for index in definition.indexes if index.key_label]
    if definition.form == OPEN_SEARCH and (labelled or definition.footer_key_label):
        raise IndexNotPossible(
            "nothing is encrypted by keys in OpenSearch",
            found=", ".join(labelled) or "a key of footers",
            expected="an index without key labels",
            hint="keep the index in a folder, in the form NATIVE or XSKIPPER",
        )
    if labelled and not definition.footer_key_label:
        raise IndexNotPossible(
            "an encrypted index needs a key of its footers, too",
            found=f"a key of {', '.join(labelled)}, and none of the footers",
            expected="footer_key_label (in a resource encryption.footerKeyLabel)",
            hint="name that key, or leave the index unencrypted",
        )
    if definition.plaintext_footer and not definition.footer_key_label:
        raise IndexNotPossible(
            "footers in plain text belong to an encrypted index",
            found="plaintext_footer without a key",
            expected="footer_key_label (in a resource encryption.footerKeyLabel)",
            hint="leave the option out, or encrypt the index",
        )
    if definition.form not in WITHOUT_OTHERS:
        store_form(definition.form).check(definition)


# Port to an indexed target: its files, and the terms that can be indexed.

Progress = Callable[[int, int], None]
"""Called with the number of files done and of all."""


class IndexableTarget(Protocol):
    """Files that Spark reads as one relation."""

    @property
    def target(self) -> Target:
        """Location of the files."""

    @property
    def fingerprint(self) -> ReaderFingerprint:
        """Their reader in this session."""

    @property
    def partition_columns(self) -> tuple[tuple[str, str], ...]:
        """Name and Spark type of each partition column, in order."""

    def column(self, name: str) -> Term:
        """Term of a column or nested field as people write it (`a.b`).

        Raises:
            IndexNotPossible: there is no such column; with the ones that there are.
        """

    def expression(self, sql: str) -> Term:
        """Term of a deterministic expression over the columns.

        Raises:
            IndexNotPossible: it cannot be analysed, or is not deterministic.
        """

    def list_files(self, where: str) -> pa.Table:
        """Current files as identity columns; `where` is SQL over partition columns and the path.

        Raises:
            IndexNotPossible: `where` speaks of something else.
        """

    def build(
        self, indexes: Sequence[IndexDefinition], files: pa.Table, progress: Progress
    ) -> Iterator[pa.Table]:
        """Rows about some listed files, in bounded pieces.

        A file that changed while it was read, or cannot be read, is left out: it stays unknown
        (rule S21). So is a file about which nothing could be proved.
        """

    @property
    def left_out(self) -> Mapping[str, str]:
        """Files that builds have left out, by path, with the reason."""


class FileListing(Protocol):
    """Facts about files that need no look into them."""

    def reads_alike(self, definition: SkippingDefinition) -> bool:
        """Whether unchanged files are read as when they were indexed."""

    def list_files(self, where: str) -> pa.Table:
        """As `IndexableTarget.list_files`."""


# Resolves declarations to definitions: columns, parameters and names are checked.


@dataclass(frozen=True)
class Declaration:
    """One skipping index as it is declared, through any interface."""

    indexes: tuple[Index, ...]
    where: str = ""
    """SQL that chooses files (rule S23)."""
    enabled: bool = True
    mode: RefreshMode = RefreshMode.AUTO
    owner: str = ""
    """`SkippingIndex/name` of the resource that owns it (rule S26)."""
    form: str = "NATIVE"
    footer_key_label: str = ""
    """Key of the footers, when the index is encrypted."""
    plaintext_footer: bool = False
    """Whether footers stay readable without a key."""
    properties: Mapping[str, str] = field(default_factory=dict)


class DeclarationNotPossible(IndexNotPossible):
    """Several faults of a declaration; `problems` has them one by one."""

    def __init__(self, problems: tuple[tuple[str, SkippingError], ...]) -> None:
        super().__init__(
            f"{len(problems)} things cannot be as they are declared",
            found="\n".join(f"{path}: {_message(error)}" for path, error in problems),
            expected=_by_path((path, error.expected) for path, error in problems),
            hint=_by_path((path, error.hint) for path, error in problems),
        )
        self.problems = problems


def _by_path(texts: Iterable[tuple[str, str | None]]) -> str | None:
    return "\n".join(f"{path}: {text}" for path, text in texts if text is not None) or None


def _message(error: SkippingError) -> str:
    return error.message if error.found is None else f"{error.message} ({error.found})"


def refuse_problems(declaration: Declaration, target: IndexableTarget) -> None:
    """Refuse a declaration with all of its faults at once, through any interface."""
    found = problems(declaration, target)
    if len(found) == 1 and not declaration.owner:
        raise found[0][1]
    if found:
        raise DeclarationNotPossible(found)


def problems(
    declaration: Declaration, target: IndexableTarget
) -> tuple[tuple[str, SkippingError], ...]:
    """Return all faults of a declaration, by its field (`indexes[0]`, `where`)."""
    found: list[tuple[str, SkippingError]] = []
    resolved: list[IndexDefinition] = []
    if not declaration.indexes:
        found.append(("indexes", nothing_kept("declare what is kept, such as price MIN_MAX")))
    for number, index in enumerate(declaration.indexes):
        try:
            resolved += define_indexes([index], target, 1, resolved, form=declaration.form)
        except IndexNotPossible as error:
            found.append((f"indexes[{number}]", error))
    if declaration.where:
        try:
            target.list_files(declaration.where)
        except IndexNotPossible as error:
            found.append(("where", error))
    if not found:
        try:
            check_form(_defined(declaration, target, tuple(resolved)))
        except IndexNotPossible as error:
            found.append(("indexes", error))
    return tuple(found)


def nothing_kept(hint: str) -> IndexNotPossible:
    """Build the error about a skipping index that would keep nothing."""
    return IndexNotPossible("a skipping index has at least one index", found="none", hint=hint)


def define(
    declaration: Declaration, target: IndexableTarget, next_index: int
) -> SkippingDefinition:
    """Resolve a declaration against its target; index ids are numbered from `next_index`."""
    if declaration.where:
        target.list_files(declaration.where)  # refuses what chooses rows rather than files
    indexes = define_indexes(declaration.indexes, target, next_index, (), form=declaration.form)
    definition = _defined(declaration, target, indexes)
    check_form(definition)
    return definition


def _defined(
    declaration: Declaration, target: IndexableTarget, indexes: tuple[IndexDefinition, ...]
) -> SkippingDefinition:
    return SkippingDefinition(
        target=target.target,
        fingerprint=target.fingerprint.for_indexes(indexes),
        indexes=indexes,
        where=declaration.where,
        partition_columns=target.partition_columns,
        enabled=declaration.enabled,
        mode=declaration.mode,
        owner=declaration.owner,
        form=declaration.form,
        footer_key_label=declaration.footer_key_label,
        plaintext_footer=declaration.plaintext_footer,
        properties=tuple(sorted(declaration.properties.items())),
    )


def define_indexes(
    declared: Sequence[Index],
    target: IndexableTarget,
    next_index: int,
    present: Sequence[IndexDefinition],
    *,
    form: str = "NATIVE",
) -> tuple[IndexDefinition, ...]:
    """Resolve indexes that are added to those present, in a store of a form."""
    found: list[IndexDefinition] = []
    for number, index in enumerate(declared, next_index):
        definition = IndexDefinition(
            index_id=f"i{number}",
            type=index.type,
            terms=_terms(index, target),
            parameters=parameters_in(form, index.type, index.parameters),
            key_label=index.key_label or "",
        )
        index_type(index.type).check(definition)
        if index.type == "PARTITION":
            _refuse_unpartitioned(definition, target)
        for other in (*present, *found):
            if (other.type, other.terms) == (definition.type, definition.terms):
                raise IndexNotPossible(
                    f"{definition.label} is declared already",
                    found=f"{other.index_id} {other.label}",
                    hint="alter its parameters, or drop it first",
                )
        found.append(definition)
    return tuple(found)


def resolve_again(term: Term, target: IndexableTarget) -> Term:
    """Resolve a term against the target's columns; `IndexNotPossible` if it is gone."""
    names = term.names
    if names is None:
        return target.expression(term.label)
    return target.column(".".join(_quoted(name) for name in names))


def _terms(index: Index, target: IndexableTarget) -> tuple[Term, ...]:
    if index.expression is not None:
        return (target.expression(index.expression),)
    columns = index.columns if index.columns is not None else (index.column or "",)
    return tuple(target.column(column) for column in columns)


def _refuse_unpartitioned(definition: IndexDefinition, target: IndexableTarget) -> None:
    partitions = [name for name, _ in target.partition_columns]
    if definition.term.names not in [(name,) for name in partitions]:
        raise IndexNotPossible(
            f"{definition.label}: not a partition column",
            found=definition.term.label,
            expected=", ".join(partitions) or "a target with partition columns",
            hint="use MIN_MAX or VALUE_SET for columns of the files themselves",
        )


def _quoted(name: str) -> str:
    is_plain = name.isidentifier()
    return name if is_plain else "`" + name.replace("`", "``") + "`"


# Difference between the current files and the rows about them, as data.

_REST = tuple(name for name, _ in IDENTITY_FIELDS[1:])


@dataclass(frozen=True)
class FileChanges:
    """Changes of the files since the rows were made."""

    new: pa.Table
    """Files without a row; identity columns, as all of these."""
    changed: pa.Table
    """Files whose row is about another content (rule S5), as they are now."""
    unchanged: pa.Table
    removed: pa.Array
    """Paths of rows whose files are gone."""

    @property
    def to_build(self) -> pa.Table:
        return pa.concat_tables([self.new, self.changed])

    @property
    def is_empty(self) -> bool:
        return not (self.new.num_rows or self.changed.num_rows or len(self.removed))

    def __str__(self) -> str:
        return (
            f"{self.new.num_rows} new, {self.changed.num_rows} changed, "
            f"{len(self.removed)} removed, {self.unchanged.num_rows} unchanged"
        )


def compare(listing: pa.Table, known: FileTable) -> FileChanges:
    """Compare files with rows, by path and then by everything else of the identity."""
    listing = listing.combine_chunks()
    paths, known_paths = whole_column(listing.column("path")), known.column("path")
    # Rows are kept in the order of their paths, in which folders are listed: as a rule neither
    # differs, and then no path has to be looked for.
    if paths.equals(known_paths):
        found, is_known = None, pa.array(np.ones(len(paths), np.bool_))
        removed = known_paths.slice(0, 0)
    else:
        found = pc.index_in(paths, value_set=known_paths)
        is_known = found.is_valid()
        removed = known_paths.filter(pc.invert(pc.is_in(known_paths, value_set=paths)))
    is_same = is_known
    for name in _REST:
        now, then = whole_column(listing.column(name)), known.column(name)
        if found is not None:
            then = then.take(found)
        is_equal = pc.fill_null(pc.equal(now, then), False)
        are_absent = pc.and_(now.is_null(), then.is_null())
        is_same = pc.and_(is_same, pc.or_(is_equal, are_absent))
    return FileChanges(
        new=listing.filter(pc.invert(is_known)),
        changed=listing.filter(pc.and_(is_known, pc.invert(is_same))),
        unchanged=listing.filter(is_same),
        removed=removed,
    )


def everything_new(listing: pa.Table) -> FileChanges:
    """The difference where there are no rows."""
    nothing = listing.schema.empty_table()
    return FileChanges(listing, nothing, nothing, pa.array([], pa.large_string()))


# Plan of a refresh, decided before anything is done.


@dataclass(frozen=True)
class RefreshPlan:
    """Plan of a refresh."""

    mode: RefreshMode
    reasons: tuple[str, ...]
    """Reason why AUTO chose FULL; empty otherwise."""
    definition: SkippingDefinition
    changes: FileChanges
    """Files and rows compared; everything is new where FULL begins anew."""
    next_index: int
    """Number of the next index id afterwards."""

    @property
    def is_needed(self) -> bool:
        return self.mode is RefreshMode.FULL or not self.changes.is_empty

    def __str__(self) -> str:
        because = f" ({'; '.join(self.reasons)})" if self.reasons else ""
        return f"{self.mode.value}{because}: {self.changes}"


def plan_refresh(
    store: IndexStore,
    state: StoredState,
    definition: SkippingDefinition,
    target: IndexableTarget,
    mode: RefreshMode,
    listing: pa.Table,
) -> RefreshPlan:
    """Plan a refresh."""
    current, reasons, next_index = current_definition(definition, target, state.next_index)
    if mode is RefreshMode.INCREMENTAL and reasons:
        raise IndexNotPossible(
            "the index cannot be continued",
            found="; ".join(reasons),
            expected="files read as when the index was made",
            hint="refresh with mode FULL or AUTO",
        )
    if mode is not RefreshMode.FULL and not reasons:
        if state.refreshed_at == NEVER:
            changes = everything_new(listing)
            return RefreshPlan(RefreshMode.INCREMENTAL, (), current, changes, next_index)
        try:
            changes = compare(listing, store.open(state))
            return RefreshPlan(RefreshMode.INCREMENTAL, (), current, changes, next_index)
        except IndexUnreadable as error:
            if mode is RefreshMode.INCREMENTAL:
                raise
            reasons = (f"the rows cannot be read: {error.message}",)
    changes = everything_new(listing)
    given = reasons if mode is RefreshMode.AUTO else ()
    return RefreshPlan(RefreshMode.FULL, given, current, changes, next_index)


def current_definition(
    definition: SkippingDefinition, target: IndexableTarget, next_index: int
) -> tuple[SkippingDefinition, tuple[str, ...], int]:
    """Resolve the definition against the current target.

    Returns:
        The definition, why rows made with the former one cannot be continued, and the number of
        the next index id: an index whose column has another type gets a new id.
    """
    reasons: list[str] = []
    indexes: list[IndexDefinition] = []
    for index in definition.indexes:
        terms = tuple(resolve_again(term, target) for term in index.terms)
        if terms != index.terms:
            for before, after in zip(index.terms, terms, strict=True):
                if before != after:
                    reasons.append(_other_term(before, after))
            index = replace(index, index_id=f"i{next_index}", terms=terms)
            next_index += 1
        indexes.append(index)
    fingerprint = target.fingerprint.for_indexes(indexes)
    if definition.fingerprint != fingerprint:
        reasons.append(_difference(definition.fingerprint, fingerprint))
    if definition.partition_columns != target.partition_columns:
        reasons.append("the partition columns are others")
    current = replace(
        definition,
        indexes=tuple(indexes),
        fingerprint=fingerprint,
        partition_columns=target.partition_columns,
    )
    return current, tuple(reasons), next_index


def _other_term(before: Term, after: Term) -> str:
    if before.data_type != after.data_type:
        return f"{before.label} is {after.data_type}, was {before.data_type}"
    if before.is_outdated:
        return f"an older Snaploom, which did not distinguish all literals, indexed {before.label}"
    return f"Spark analyses {before.label} otherwise than when it was declared"


def _difference(before: ReaderFingerprint, after: ReaderFingerprint) -> str:
    if before.format != after.format:
        return f"the format is {after.format}, was {before.format}"
    then = dict((*before.options, *before.settings, *before.evaluation))
    since = dict((*after.options, *after.settings, *after.evaluation))
    names = [name for name in {**then, **since} if then.get(name) != since.get(name)]
    if not names:
        return "the schema of the files is another one"
    return "; ".join(
        f"{name} is {since.get(name, 'not set')}, was {then.get(name, 'not set')}" for name in names
    )
