"""Tables of Iceberg and Delta, by their own metadata and the first rows of their files.

Both are read at their newest version. Of Delta that is the newest checkpoint and the commits behind
it, of Iceberg the newest metadata file and the manifests of its current snapshot. Only files below
the table's own folder are looked at: a table that was copied has other addresses in its metadata.
"""

import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import JsonValue

from snaploom.plugins.discovery.avro import open_avro
from snaploom.plugins.discovery.foundfiles import (
    MOST_PARTS,
    FoundFile,
    NotRecognised,
)
from snaploom.plugins.discovery.layout import TableFolder
from snaploom.plugins.discovery.profiles import SourceProfile
from snaploom.plugins.discovery.scratch import Scratch
from snaploom.plugins.discovery.typedfiles import (
    TYPED_FORMATS,
    Meter,
    Part,
    object_file,
    profile_typed,
    spread,
)
from snaploom.types.arrow import OF_SQL
from snaploom.types.schemas import INTEGER_BITS, SQL_NAMES

METADATA_BYTES = 32 * 1024 * 1024
"""Bytes of one file of a table's metadata."""
MOST_MANIFESTS = 100
"""Manifests of one Iceberg table that are read; each names up to some thousand files."""

_CHECKPOINT = re.compile(r"([0-9]{20})\.checkpoint(?:\.[0-9]{10}\.([0-9]{10}))?\.parquet")
_COMMIT = re.compile(r"([0-9]{20})\.json")
_VERSION = re.compile(r"v?([0-9]+)(?:-[^/]*)?\.metadata\.json")
_DELETED = 2
"""Status of a manifest's entry whose file the table has not any more."""
_FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True)
class _Contents:
    """The contents of a table at its newest version."""

    columns: Mapping[str, str]
    """Names of its columns by those in its files (Delta) or their numbers (Iceberg)."""
    partition_columns: tuple[str, ...]
    """By which its files are divided."""
    files: tuple[FoundFile, ...]
    formats: Mapping[str, str] = field(default_factory=dict)
    """Of files that are no Parquet, by their URI."""
    values: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    """Values that stand in no file but in the metadata, by the file's URI."""
    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def profile_table_folder(
    table: TableFolder, scratch: Scratch, meter: Meter, budget: int
) -> SourceProfile:
    """The profile of a table.

    Raises:
        NotRecognised: its metadata cannot be read here, or it has no rows.
        StorageError: its store cannot be asked.
    """
    contents = _delta(table, meter) if table.data_format == "delta" else _iceberg(table, meter)
    if not contents.files:
        raise NotRecognised(f"a table of {table.data_format.capitalize()} without files")
    share = min(1.0, budget / max(1, sum(file.size for file in contents.files)))
    files = spread(contents.files, min(share, MOST_PARTS / len(contents.files)))
    parts = [
        Part(1, file, budget // len(files) if share < 1 else budget,
             contents.formats.get(file.uri, "parquet"))
        for file in files
    ]  # fmt: skip

    def shape(found: pa.Table, data: Part) -> pa.Table:
        return _shaped(found, data, contents)

    profile = profile_typed(table.name, table, parts, scratch, meter, shape)
    return replace(profile, partition_columns=contents.partition_columns, notes=contents.notes)


def _shaped(found: pa.Table, data: Part, contents: _Contents) -> pa.Table:
    kept: list[tuple[str, pa.ChunkedArray]] = []
    for index, own in enumerate(found.schema):
        number = (own.metadata or {}).get(_FIELD_ID, b"").decode()
        name = contents.columns.get(number) or contents.columns.get(own.name)
        if name is not None and name not in (other for other, _ in kept):
            kept.append((name, found.column(index)))
    for name, text in contents.values.get(data.file.uri, {}).items():
        kind = contents.types.get(name, pa.string())
        kept.append((name, pa.array([_value(text, kind)] * len(found), kind)))
    return pa.table(dict(kept))


def _value(text: str | None, kind: pa.DataType) -> object:
    if text is None or text == "":
        return None
    if pa.types.is_integer(kind):
        return int(text)
    return date.fromisoformat(text[:10]) if pa.types.is_date(kind) else text


def _content(file: FoundFile, meter: Meter) -> bytes:
    if file.size > METADATA_BYTES:
        raise NotRecognised(f"metadata of {file.size:,} bytes; at most {METADATA_BYTES:,} are read")
    return object_file(file, meter).read()


def _document(content: bytes) -> dict[str, JsonValue]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise NotRecognised("metadata that is not JSON") from None
    if not isinstance(found, dict):
        raise NotRecognised("metadata that is no object of JSON")
    return found


def _objects(value: JsonValue) -> list[dict[str, JsonValue]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


# Delta.


def _delta(table: TableFolder, meter: Meter) -> _Contents:
    log = table.below("_delta_log/")
    start, parts = _newest_checkpoint(log)
    live: dict[str, Mapping[str, object]] = {}
    metadata: Mapping[str, object] | None = None
    for action in _actions(log, start, parts, meter):
        added, removed, given = (action.get(name) for name in ("add", "remove", "metaData"))
        if isinstance(added, Mapping) and isinstance(added.get("path"), str):
            live[added["path"]] = added
        if isinstance(removed, Mapping):
            live.pop(str(removed.get("path")), None)
        if isinstance(given, Mapping) and given.get("schemaString"):
            metadata = given
    if metadata is None:
        raise NotRecognised("a table of Delta whose log has no schema")
    return _delta_contents(table, metadata, live)


def _newest_checkpoint(log: Mapping[str, FoundFile]) -> tuple[int, list[FoundFile]]:
    """Version and files of the newest checkpoint that is whole; -1 and none without one."""
    by_version: dict[int, list[FoundFile]] = {}
    wanted: dict[int, int] = {}
    for name, file in sorted(log.items()):
        match = _CHECKPOINT.fullmatch(name)
        if match is not None:
            version = int(match[1])
            by_version.setdefault(version, []).append(file)
            wanted[version] = int(match[2] or 1)
    whole = [version for version, files in by_version.items() if len(files) >= wanted[version]]
    return (max(whole), by_version[max(whole)]) if whole else (-1, [])


def _actions(
    log: Mapping[str, FoundFile], start: int, checkpoint: Sequence[FoundFile], meter: Meter
) -> Iterator[Mapping[str, object]]:
    for file in checkpoint:
        opened = pq.ParquetFile(object_file(file, meter))
        names = [n for n in ("add", "remove", "metaData") if n in opened.schema_arrow.names]
        for batch in opened.iter_batches(columns=names):
            yield from batch.to_pylist()
    commits = {int(match[1]): file for name, file in log.items()
               if (match := _COMMIT.fullmatch(name)) and int(match[1]) > start}  # fmt: skip
    if sorted(commits) != list(range(start + 1, start + 1 + len(commits))):
        raise NotRecognised("a table of Delta whose log cannot be read from its beginning")
    for version in sorted(commits):
        for line in _content(commits[version], meter).splitlines():
            if line.strip():
                yield _document(line)


def _pairs(value: object) -> dict[str, str | None]:
    """A map as JSON has it, or as a list of pairs, as Arrow gives it."""
    items = (
        value.items() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    )
    return {str(key): None if text is None else str(text) for key, text in items}


def _delta_contents(
    table: TableFolder, metadata: Mapping[str, object], live: Mapping[str, Mapping[str, object]]
) -> _Contents:
    schema = _document(str(metadata["schemaString"]).encode())
    columns: dict[str, str] = {}
    types: dict[str, pa.DataType] = {}
    for each in _objects(schema.get("fields")):
        name, own = str(each.get("name")), each.get("metadata")
        physical = own.get("delta.columnMapping.physicalName") if isinstance(own, dict) else None
        columns[physical if isinstance(physical, str) else name] = name
        types[name] = _partition_type(str(each.get("type")))
    given = metadata.get("partitionColumns")
    partitions = tuple(map(str, given)) if isinstance(given, list) else ()
    files = table.below("")
    found: list[FoundFile] = []
    values: dict[str, dict[str, str | None]] = {}
    has_vectors = False
    for path in sorted(live):
        file = files.get(unquote(path))
        if file is None:
            continue
        found.append(file)
        has_vectors |= live[path].get("deletionVector") is not None
        pairs = _pairs(live[path].get("partitionValues"))
        values[file.uri] = {columns.get(name, name): text for name, text in pairs.items()}
    notes = _missing(len(live) - len(found))
    if has_vectors:
        notes += ("rows that are deleted, but still in its files, were read as well",)
    return _Contents(columns, partitions, tuple(found), {}, values, types, notes)


def _missing(number: int) -> tuple[str, ...]:
    return (f"{number:,} of its files are not in its folder",) if number else ()


def _partition_type(name: str) -> pa.DataType:
    """The type of a partition column of Delta: of whole numbers and dates, all others are text."""
    sql = SQL_NAMES.get(name, name)
    return OF_SQL[sql] if sql in INTEGER_BITS or sql == "date" else pa.string()


# Iceberg.


def _iceberg(table: TableFolder, meter: Meter) -> _Contents:
    versions = {(int(match[1]), name): file for name, file in table.below("metadata/").items()
                if (match := _VERSION.fullmatch(name))}  # fmt: skip
    if not versions:
        raise NotRecognised("a table of Iceberg whose metadata is packed")
    document = _document(_content(versions[max(versions)], meter))
    schema = _current(document, "schemas", "schema-id", "current-schema-id", "schema")
    columns = {str(each.get("id")): str(each.get("name"))
               for each in _objects(schema.get("fields"))}  # fmt: skip
    partitions = _partition_columns(document, columns)
    snapshot = next(
        (each for each in _objects(document.get("snapshots"))
         if each.get("snapshot-id") == document.get("current-snapshot-id")), None
    )  # fmt: skip
    if snapshot is None:
        raise NotRecognised("a table of Iceberg without a snapshot")
    files = table.below("")
    found: list[FoundFile] = []
    formats: dict[str, str] = {}
    missing = 0
    for data in _data_files(snapshot, files, meter):
        file = _below(str(data.get("file_path")), files)
        data_format = str(data.get("file_format")).lower()
        if file is None or data_format not in TYPED_FORMATS:
            missing += 1
            continue
        found.append(file)
        formats[file.uri] = data_format
    return _Contents(
        {**columns, **{name: name for name in columns.values()}}, partitions,
        tuple(found), formats, notes=_missing(missing),
    )  # fmt: skip


def _current(
    document: Mapping[str, JsonValue], several: str, number: str, current: str, single: str
) -> dict[str, JsonValue]:
    """One of several parts by its number; of old tables the only one."""
    for each in _objects(document.get(several)):
        if each.get(number) == document.get(current):
            return each
    only = document.get(single)
    return only if isinstance(only, dict) else {}


def _partition_columns(
    document: Mapping[str, JsonValue], columns: Mapping[str, str]
) -> tuple[str, ...]:
    spec = _current(document, "partition-specs", "spec-id", "default-spec-id", "")
    fields = _objects(spec.get("fields")) or _objects(document.get("partition-spec"))
    kept = [columns.get(str(each.get("source-id"))) for each in fields
            if each.get("transform") in ("identity", "day", "month", "year", "hour")]  # fmt: skip
    return tuple(dict.fromkeys(name for name in kept if name is not None))


def _below(path: str, files: Mapping[str, FoundFile]) -> FoundFile | None:
    """The file of a path, which may have another address by now: its longest end that is there."""
    parts = path.split("/")
    ends = ("/".join(parts[start:]) for start in range(len(parts)))
    return next((files[end] for end in ends if end in files), None)


def _data_files(
    snapshot: Mapping[str, JsonValue], files: Mapping[str, FoundFile], meter: Meter
) -> Iterator[Mapping[str, object]]:
    listed = _records(str(snapshot.get("manifest-list")), files, meter)
    manifests = [str(each.get("manifest_path")) for each in listed if not each.get("content")]
    for path in manifests[:MOST_MANIFESTS]:
        for entry in _records(path, files, meter):
            data = entry.get("data_file")
            if entry.get("status") != _DELETED and isinstance(data, Mapping):
                yield data


def _records(path: str, files: Mapping[str, FoundFile], meter: Meter) -> list[dict[str, object]]:
    file = _below(path, files)
    if file is None:
        raise NotRecognised(f"a table of Iceberg without {path.rpartition('/')[2][:100]}")
    return list(open_avro(io.BytesIO(_content(file, meter))).records)
