"""`TableSource`: a table of Iceberg or Delta: one place, and nothing that belongs to files."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from snaploom.models.datasource import DataSource
from snaploom.models.findings import Finding, make_finding
from snaploom.policy.fileformats import format_of
from snaploom.sources.declared import (
    DatasetName,
    HdfsLikeSource,
    place_dataset,
)

_GLOB = frozenset("*?[{")


@dataclass(frozen=True)
class TableSource(HdfsLikeSource):
    """A source that is a table."""

    format: str

    @classmethod
    def of(cls, source: DataSource) -> Self | None:
        """The source, if its format is one of tables."""
        declared = source.spec.hdfs_like
        if declared is None or not format_of(declared.format).table:
            return None
        return cls(source, declared, declared.format.lower())

    @property
    def table_format(self) -> str:
        """Its format."""
        return self.format

    @property
    def called(self) -> str:
        """The display name of its format."""
        return format_of(self.format).table

    @property
    def options(self) -> dict[str, str]:
        """None at all, which `kind_findings` reports."""
        return {}

    @property
    def datasets(self) -> tuple[DatasetName, ...]:
        """The place of the table."""
        return tuple(dict.fromkeys(map(place_dataset, self.globs)))

    def kind_findings(self) -> Iterator[Finding]:
        """Settings that a table cannot have; its place may be a name in a catalog."""
        declared = self.declared
        if len(self.globs) > 1 or _GLOB & set(self.globs[0]):
            found = ", ".join(self.globs[:3])
            yield self._not_with_tables(
                "sourceUriGlobs", found, "the place of one table, without `*`"
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
