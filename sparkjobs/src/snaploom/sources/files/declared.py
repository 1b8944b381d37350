"""`FileSource`: files that Spark lists and reads, of any format that is no table."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from snaploom.models.datasource import DataSource, HdfsLike
from snaploom.models.findings import Finding, make_finding
from snaploom.policy.fileformats import format_of
from snaploom.sources.declared import DatasetName, HdfsLikeSource, place_dataset

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/|/")
_SPECIAL = re.compile(r"[*?\[\]{}\\]")


@dataclass(frozen=True)
class FileSource(HdfsLikeSource):
    """A source of files."""

    @classmethod
    def of(cls, source: DataSource) -> Self | None:
        declared = source.spec.hdfs_like
        is_files = declared is not None and not format_of(declared.format).table
        return cls(source, declared) if declared is not None and is_files else None

    @property
    def options(self) -> dict[str, str]:
        return dict(self.declared.format_options)

    @property
    def called(self) -> str:
        return f"files of {self.declared.format}"

    @property
    def files(self) -> HdfsLike | None:
        """All of them, unless Spark has no reader of its own for them."""
        return None if format_of(self.declared.format).reader else self.declared

    @property
    def unknown_schema(self) -> str:
        """Files of text have types only as their values show them."""
        data_format = self.declared.format
        if self.declared.schema_fields is not None or format_of(data_format).is_self_describing:
            return ""
        return f"{data_format} has only as it is read; declare schemaFields to have them checked"

    @property
    def datasets(self) -> tuple[DatasetName, ...]:
        return tuple(dict.fromkeys(place_dataset(_folder(glob)) for glob in self.globs))

    def kind_findings(self) -> Iterator[Finding]:
        """Globs whose meaning would depend on where a job runs."""
        for index, glob in enumerate(self.globs):
            if not _ABSOLUTE.match(glob):
                yield make_finding(
                    "SL173",
                    "files must be given by an absolute path or a URI",
                    resource=self.source.identity,
                    path=f"spec.hdfsLike.sourceUriGlobs[{index}]",
                    found=glob,
                    expected="/folder/{0}, or scheme://bucket/{0}".format(_below(glob)),
                )


def _below(glob: str) -> str:
    """The part of a glob below a folder: without scheme, `./` and `../`."""
    return (glob.partition(":")[2] or glob).lstrip("./")


def _folder(glob: str) -> str:
    """The innermost folder that holds all that a glob matches; a file by itself as it is."""
    fixed, *rest = _SPECIAL.split(glob, maxsplit=1)
    return fixed.rpartition("/")[0] or "/" if rest else fixed
