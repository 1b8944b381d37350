"""`TableSource`: a table of Iceberg or Delta: one place, and nothing that belongs to files."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from snaploom.models.datasource import DataSource
from snaploom.models.findings import Finding, make_finding
from snaploom.policy.addresses import hadoop_uri
from snaploom.policy.fileformats import format_of
from snaploom.sources import declared

_GLOB = frozenset("*?[{")


@dataclass(frozen=True)
class TableSource(declared.HdfsLikeSource):
    """A source that is a table."""

    format: str

    @classmethod
    def of(cls, source: DataSource) -> Self | None:
        declared = source.spec.hdfs_like
        if declared is None or not format_of(declared.format).table:
            return None
        return cls(source, declared, declared.format.lower())

    @property
    def table_format(self) -> str:
        return self.format

    @property
    def called(self) -> str:
        return format_of(self.format).table

    @property
    def options(self) -> dict[str, str]:
        """None at all, which `kind_findings` reports."""
        return {}

    @property
    def place(self) -> str:
        """Its place, or its name in a catalog."""
        table = self.declared.table
        return hadoop_uri(self.globs[0]) if table is None else str(table)

    @property
    def place_field(self) -> str:
        """Path of the field that names it."""
        return "hdfsLike.sourceUriGlobs" if self.declared.table is None else "hdfsLike.table"

    @property
    def globs(self) -> tuple[str, ...]:
        table = self.declared.table
        return self.declared.globs if table is None else (table.place,)

    @property
    def datasets(self) -> tuple[declared.DatasetName, ...]:
        table = self.declared.table
        if table is not None:
            return (declared.table_dataset(table),)
        return tuple(dict.fromkeys(map(declared.place_dataset, self.globs)))

    @property
    def no_snapshots(self) -> declared.NoSnapshots:
        """A table that nothing was written to."""
        found = f"no row in {self.place}"
        return declared.NoSnapshots(
            self.place_field, found, "check that something was committed to it"
        )

    def kind_findings(self) -> Iterator[Finding]:
        declared = self.declared
        if len(self.globs) > 1 or _GLOB & set(self.globs[0]):
            found = ", ".join(self.globs[:3])
            yield self._not_with_tables(
                "sourceUriGlobs", found, "the place of one table, without `*`"
            )
        if "/" not in self.globs[0]:
            yield make_finding(
                "SL173",
                "the place of a table must be an absolute path or a URI",
                resource=self.source.identity,
                path="spec.hdfsLike.sourceUriGlobs[0]",
                found=self.globs[0],
                expected="/folder/table, or scheme://bucket/table",
                hint="name a table of a catalog by `table`, without sourceUriGlobs",
            )
        given = {
            "sourceUriPrefix": declared.source_uri_prefix,
            "formatOptions": ", ".join(sorted(declared.format_options)),
            "schemaFields": ", ".join(field.name for field in declared.schema_fields or ()),
        }
        for field, found_ in given.items():
            if found_:
                yield self._not_with_tables(field, found_, f"a source without {field}")

    def _not_with_tables(self, field: str, found: str, expected: str) -> Finding:
        return make_finding(
            "SL148",
            "a table has its own files, schema and versions, and is read as it is",
            resource=self.source.identity,
            path=f"spec.hdfsLike.{field}",
            found=found,
            expected=expected,
        )
