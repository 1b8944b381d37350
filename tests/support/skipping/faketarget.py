"""Files that exist only as numbers in a dictionary, indexed with the real index types."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from snaploom.errors import IndexNotPossible
from snaploom.skipping.core.definition import (
    IndexDefinition,
    ReaderFingerprint,
    Target,
    Term,
    arrow_type,
    column_term,
)
from snaploom.skipping.core.filetable import IDENTITY_FIELDS, FileTable
from snaploom.skipping.indexes.base import index_type
from snaploom.skipping.lifecycle.declaration import Progress

URI = "file:/data/flights"
IDENTITY = pa.schema(list(IDENTITY_FIELDS))


@dataclass(frozen=True)
class FakeFile:
    """A file with the same integers in each column."""

    values: tuple[int | None, ...]
    modified: int = 1_000
    etag: str | None = None

    @property
    def length(self) -> int:
        return 100 + len(self.values)


def nothing() -> None:
    """What happens during a build unless a test adds more; processes can be given it."""


@dataclass
class FakeTarget:
    """Behind the port `IndexableTarget`."""

    files: dict[str, FakeFile] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=lambda: {"a": "bigint", "b": "bigint"})
    uri: str = URI
    settings: tuple[tuple[str, str], ...] = ()
    partition_columns: tuple[tuple[str, str], ...] = ()
    unreadable: set[str] = field(default_factory=set)
    during_build: Callable[[], None] = nothing
    built: list[tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)
    """For each build, ids of indexes and names of files."""

    @property
    def target(self) -> Target:
        return Target(self.uri, format="parquet")

    @property
    def fingerprint(self) -> ReaderFingerprint:
        return ReaderFingerprint("parquet", settings=self.settings)

    def column(self, name: str) -> Term:
        if name not in self.columns:
            raise IndexNotPossible(f"no column {name}", expected=", ".join(self.columns))
        return column_term((name,), self.columns[name])

    def expression(self, sql: str) -> Term:
        raise IndexNotPossible(f"no expression {sql}")

    def list_files(self, where: str) -> pa.Table:
        chosen = {name: file for name, file in self.files.items() if where in name}
        return pa.table(
            {
                "path": [self.path(name) for name in chosen],
                "length": [file.length for file in chosen.values()],
                "modified": [file.modified for file in chosen.values()],
                "etag": [file.etag for file in chosen.values()],
            },
            schema=IDENTITY,
        )

    def build(
        self, indexes: Sequence[IndexDefinition], files: pa.Table, progress: Progress
    ) -> Iterator[pa.Table]:
        names = tuple(path.removeprefix(f"{self.uri}/") for path in files["path"].to_pylist())
        self.built.append((tuple(index.index_id for index in indexes), names))
        for number, name in enumerate(names, 1):
            if name in self.files and name not in self.unreadable:
                yield self._row(name, indexes)
            self.during_build()
            progress(number, len(names))

    @property
    def left_out(self) -> dict[str, str]:
        return {self.path(name): "it is unreadable" for name in self.unreadable}

    def path(self, name: str) -> str:
        return f"{self.uri}/{name}"

    def put(self, name: str, *values: int | None) -> None:
        before = self.files.get(name)
        modified = before.modified + 1 if before else 1_000
        self.files[name] = replace(FakeFile(values), modified=modified)

    def _row(self, name: str, indexes: Sequence[IndexDefinition]) -> pa.Table:
        file = self.files[name]
        row: dict[str, pa.Array] = {
            "path": pa.array([self.path(name)], pa.large_string()),
            "length": pa.array([file.length], pa.int64()),
            "modified": pa.array([file.modified], pa.int64()),
            "etag": pa.array([file.etag], pa.large_string()),
        }
        for index in indexes:
            kind = index_type(index.type)
            builder = kind.builder(index)
            builder.add([pa.array(file.values, arrow_type(index.term.data_type))])
            nulls = file.values.count(None)
            row[f"{index.index_id}.values"] = pa.array([len(file.values) - nulls], pa.int64())
            row[f"{index.index_id}.nulls"] = pa.array([nulls], pa.int64())
            kept = builder.finish()
            for name_, type_ in kind.fields(index).items():
                row[f"{index.index_id}.{name_}"] = pa.array([kept[name_]], type_)
        return pa.table(row)


def as_rows(files: FileTable, *columns: str) -> dict[str, tuple[object, ...]]:
    """Columns by name of the file below the target."""
    paths = [path.removeprefix(f"{URI}/") for path in files.column("path").to_pylist()]
    values = zip(*(files.column(name).to_pylist() for name in columns), strict=True)
    return dict(zip(paths, values, strict=True)) if columns else dict.fromkeys(paths, ())
