"""The part shared by files and by tables of Iceberg and Delta, all declared as `hdfsLike`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from snaploom.models.codes import make_finding
from snaploom.models.datasource import HdfsLike, SnapshotSettings
from snaploom.models.finding import Finding
from snaploom.planning.commonchecks.columns import undeclared_column
from snaploom.planning.commonchecks.fields import Findings
from snaploom.planning.commonchecks.scope import Scope
from snaploom.planning.declaredcolumns import DeclaredColumns, columns_of
from snaploom.planning.fileformats import format_findings, source_place
from snaploom.planning.prefix import PrefixInvalid, UriPrefix
from snaploom.planning.sources.declared import DeclaredSource, NoSnapshots
from snaploom.planning.sources.physical import schema_findings, snapshot_findings

_PATH = "spec.hdfsLike"
_MADE_BY_OPTIONS = frozenset({"basepath", "columnnameofcorruptrecord", "singlevariantcolumn"})
"""Options of formats that add columns, in lower case."""


@dataclass(frozen=True)
class HdfsLikeSource(DeclaredSource, ABC):
    """A source of files, or of a table that lies in files."""

    declared: HdfsLike

    @property
    @abstractmethod
    def options(self) -> dict[str, str]:
        """Options of the format, as far as the kind has any."""

    @abstractmethod
    def kind_findings(self) -> Iterable[Finding]:
        """Faults particular to files, or to a table."""

    def findings(self, scope: Scope) -> Findings:
        """Everything that is wrong with it."""
        place = source_place(self.source.identity)
        prefix, wrong = self._prefix()
        fields = self.declared.schema_fields or ()
        return (
            *format_findings(self.declared.format, self.options, scope.allow, place),
            *wrong,
            *self._outside_of(prefix),
            *self.kind_findings(),
            *schema_findings(fields, self.source, f"{_PATH}.schemaFields"),
            *snapshot_findings(self.declared.snapshot, fields, self.source, _PATH, prefix),
            *self._undeclared_snapshot_column(scope),
        )

    @property
    def caption(self) -> str:
        """The format."""
        return self.declared.format

    @property
    def snapshot(self) -> SnapshotSettings:
        """By a field, or by the time of reading."""
        return self.declared.snapshot

    @property
    def globs(self) -> tuple[str, ...]:
        """Of the files, or the place of the table."""
        return self.declared.source_uri_globs

    @property
    def columns(self) -> DeclaredColumns | None:
        """The columns of `schemaFields`, and the captures of the path."""
        fields, prefix = self.declared.schema_fields, self.declared.source_uri_prefix
        options = {name.lower() for name in self.declared.format_options}
        if fields is None or _MADE_BY_OPTIONS & options:
            return None
        try:
            captures = UriPrefix.parse(prefix).names if prefix is not None else ()
        except PrefixInvalid:
            return None
        return columns_of(fields, captures)

    @property
    def no_snapshots(self) -> NoSnapshots:
        """Most often a glob that matches nothing."""
        found = f"no file matches {', '.join(self.globs)}"
        if self._has_snapshots_in_rows:
            found += ", or none that does has a row"
        hint = "check that the data is there, and the spelling of the globs"
        return NoSnapshots(f"{self.field}.sourceUriGlobs", found, hint)

    @property
    def _has_snapshots_in_rows(self) -> bool:
        """Whether a column has the snapshot, so that files without rows have none."""
        field = self.declared.snapshot.from_field_value
        if field is None:
            return False
        prefix = self.declared.source_uri_prefix
        captured = () if prefix is None else UriPrefix.parse(prefix).names
        return field.field_name.casefold() not in map(str.casefold, captured)

    def _undeclared_snapshot_column(self, scope: Scope) -> Iterator[Finding]:
        field, columns = self.declared.snapshot.from_field_value, self.columns
        if field is None or columns is None or columns.missing_of(field.field_name) is None:
            return
        path = f"{_PATH}.snapshot.fromFieldValue.fieldName"
        yield undeclared_column(self.source, columns, field.field_name, self.source, path, scope)

    def _prefix(self) -> tuple[UriPrefix | None, Findings]:
        text = self.declared.source_uri_prefix
        if text is None:
            return None, ()
        try:
            prefix = UriPrefix.parse(text)
        except PrefixInvalid as error:
            return None, (self._prefix_finding(str(error), text),)
        columns = {field.name.casefold() for field in self.declared.schema_fields or ()}
        return prefix, tuple(
            self._prefix_finding(f"'{name}' is captured, but is a column of the data too", name)
            for name in prefix.names
            if name.casefold() in columns
        )

    def _prefix_finding(self, message: str, found: str) -> Finding:
        return make_finding(
            "SL140",
            f"the prefix is not valid: {message}",
            resource=self.source.identity,
            path=f"{_PATH}.sourceUriPrefix",
            found=found,
            expected="literal text with captures {NAME:TYPE}, ending with a literal character",
        )

    def _outside_of(self, prefix: UriPrefix | None) -> Iterator[Finding]:
        for index, glob in enumerate(self.globs):
            if prefix is not None and not prefix.fits_glob(glob):
                yield make_finding(
                    "SL141",
                    "no file that this glob matches can begin with sourceUriPrefix",
                    resource=self.source.identity,
                    path=f"{_PATH}.sourceUriGlobs[{index}]",
                    found=glob,
                    expected=f"files that begin with {prefix.text}",
                    hint="make both begin with the same folders, in the same spelling",
                )
