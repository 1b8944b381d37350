"""Flint's metadata, names and types of fields, in the early form and in today's."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from snaploom.errors import IndexNotPossible, IndexUnreadable

# Types of OpenSearch's fields for types of Spark, both ways, as Flint maps them.

OWN = "_snaploom"
"""Field of a document that holds what is ours; readers of Flint ask for fields by name."""

DATE_FORMAT = "strict_date"
TIMESTAMP_FORMAT = "strict_date_optional_time_nanos"

_FIELDS = {
    "boolean": "boolean",
    "bigint": "long",
    "int": "integer",
    "smallint": "short",
    "tinyint": "byte",
    "double": "double",
    "float": "float",
    "string": "keyword",
    "binary": "binary",
}
_TYPES = {field: data_type for data_type, field in _FIELDS.items()} | {"text": "string"}
_DATE_FORMATS = frozenset({DATE_FORMAT, "date"})
_TIMESTAMP_FORMATS = frozenset({TIMESTAMP_FORMAT, "strict_date_optional_time", "epoch_millis"})


def field_of(data_type: str) -> dict[str, object] | None:
    """The field for a simple type of Spark (its `catalogString`); None where there is none."""
    if data_type in _FIELDS:
        return {"type": _FIELDS[data_type]}
    if data_type == "date":
        return {"type": "date", "format": DATE_FORMAT}
    if data_type in ("timestamp", "timestamp_ntz"):
        return {"type": "date", "format": TIMESTAMP_FORMAT}
    return None


def type_of(name: str, field: Mapping[str, object]) -> str:
    """Spark's `catalogString` of a simple field, else `IndexNotPossible`."""
    kind = str(field.get("type", ""))
    if kind == "date":
        return _type_of_date(name, str(field.get("format", TIMESTAMP_FORMAT)))
    if kind not in _TYPES:
        raise IndexNotPossible(
            f"the field {name} has a type that Spark has none for",
            found=kind,
            expected=", ".join(sorted([*_TYPES, "date", "object"])),
            hint="give a schema without this field",
        )
    return _TYPES[kind]


def _type_of_date(name: str, text: str) -> str:
    formats = {part.strip() for part in text.split("||")}
    if formats <= _DATE_FORMATS:
        return "date"
    if formats <= _TIMESTAMP_FORMATS:
        return "timestamp"
    raise IndexNotPossible(
        f"the field {name} has a format of dates that is not read",
        found=text,
        expected=", ".join(sorted(_DATE_FORMATS | _TIMESTAMP_FORMATS)),
        hint="give a schema that reads it as STRING",
    )


# Flint's metadata and names: read in the early form and in today's, written in either.

FILE_PATH = "file_path"
"""Field of the file's path in every document."""

MIN_MAX_FIELDS = (("MinMax_{}_0", "MinMax_{}_1"), ("{}_min", "{}_max"))
"""Fields of the bounds of a column: today's, which are written, and the early form's."""

SUFFIX = "_skipping_index"
PREFIX = "flint_"
LONGEST_NAME = 255
"""Bytes of the longest name of an index in OpenSearch."""


class FlintForm(StrEnum):
    """Form of the metadata."""

    TODAY = "TODAY"
    """Version 1.0.0."""
    SEED = "SEED"
    """Version 0.1, as Flint's early manual describes it."""


_SEED_KINDS = {
    "PARTITION": "Partition",
    "VALUE_SET": "ValuesSet",
    "MIN_MAX": "MinMax",
    "BLOOM_FILTER": "BloomFilter",
}
_KINDS = {
    "partition": "PARTITION",
    "valueset": "VALUE_SET",
    "valuesset": "VALUE_SET",
    "valuelist": "VALUE_SET",
    "minmax": "MIN_MAX",
    "bloomfilter": "BLOOM_FILTER",
}

SparkText = Annotated[str, Field(min_length=1)]


class _Document(BaseModel):
    # Others write more than we know, and what is unknown is theirs.
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class FlintColumn(_Document):
    """Indexed facts about one column."""

    kind: SparkText
    """`MIN_MAX` and the like."""
    name: Annotated[str, Field(alias="columnName")]
    """The column, nested ones with dots."""
    data_type: Annotated[str, Field(alias="columnType")]
    """Spark's type, as its `catalogString`."""
    parameters: Mapping[str, object] = Field(default_factory=dict)


@dataclass(frozen=True)
class FlintMetadata:
    """Metadata in the mapping of an index (`_meta`)."""

    source: str
    columns: tuple[FlintColumn, ...]
    name: str = ""
    """Name of the index; the early form has none."""
    kind: str = "skipping"
    options: Mapping[str, object] | None = None
    """Options of `WITH (...)`; the early form has none."""
    properties: Mapping[str, object] | None = None
    state: str = ""
    """State of the index; today's form keeps it elsewhere."""
    enabled: bool = True
    """Whether queries use it; today's form has no such field."""
    form: FlintForm = FlintForm.TODAY
    """The form that it was read in, or is written in."""


class _SeedProperties(_Document):
    columns: tuple[FlintColumn, ...] = Field(alias="indexedColumns")


class _SeedConfig(_Document):
    kind: str
    properties: _SeedProperties


class _SeedDocument(_Document):
    version: Literal["0.1"] = "0.1"
    config: _SeedConfig = Field(alias="indexConfig")
    source: str
    state: str = ""
    enabled: bool = True


class _TodaysDocument(_Document):
    version: str
    kind: str
    source: str
    name: str = ""
    columns: tuple[FlintColumn, ...] = Field(default=(), alias="indexedColumns")
    options: Mapping[str, object] = Field(default_factory=dict)
    properties: Mapping[str, object] = Field(default_factory=dict)


_SEED = TypeAdapter(_SeedDocument)
_TODAY = TypeAdapter(_TodaysDocument)


def parse_metadata(document: Mapping[str, object]) -> FlintMetadata:
    """Metadata of an index, in either form; `IndexUnreadable` for others."""
    try:
        if "indexConfig" in document:
            seed = _SEED.validate_python(document)
            return FlintMetadata(
                source=seed.source,
                columns=tuple(map(_understood, seed.config.properties.columns)),
                kind=seed.config.kind,
                state=seed.state,
                enabled=seed.enabled,
                form=FlintForm.SEED,
            )
        today = _TODAY.validate_python(document)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        raise IndexUnreadable(
            "the mapping's _meta is no metadata of Flint",
            found=f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}",
            expected="version 0.1 or 1.0.0 of it",
            hint="name an index that Flint or Snaploom made",
        ) from error
    return FlintMetadata(
        source=today.source,
        columns=tuple(map(_understood, today.columns)),
        name=today.name,
        kind=today.kind,
        options=today.options,
        properties=today.properties,
    )


def render_metadata(metadata: FlintMetadata) -> dict[str, object]:
    """The metadata as JSON, in its `form`."""
    if metadata.form is FlintForm.SEED:
        columns = [
            {
                "kind": _SEED_KINDS.get(column.kind, column.kind),
                "columnName": column.name,
                "columnType": column.data_type,
            }
            for column in metadata.columns
        ]
        return {
            "version": "0.1",
            "indexConfig": {"kind": metadata.kind, "properties": {"indexedColumns": columns}},
            "source": metadata.source,
            "state": metadata.state,
            "enabled": metadata.enabled,
        }
    return {
        "version": "1.0.0",
        "name": metadata.name,
        "kind": metadata.kind,
        "source": metadata.source,
        "indexedColumns": [
            {
                "kind": column.kind,
                "parameters": dict(column.parameters),
                "columnName": column.name,
                "columnType": column.data_type,
            }
            for column in metadata.columns
        ],
        "options": dict(metadata.options or {}),
        "properties": dict(metadata.properties or {}),
    }


def _understood(column: FlintColumn) -> FlintColumn:
    kind = _KINDS.get(column.kind.replace("_", "").lower(), column.kind)
    return column.model_copy(update={"kind": kind})


def index_name(table: str, form: FlintForm = FlintForm.TODAY) -> str:
    """Name of the index of a table (`catalog.database.table`) in OpenSearch.

    Today's is `flint_<catalog>_<database>_<table>_skipping_index`, the early has only the table.
    Characters that OpenSearch forbids in names are percent-encoded; capitals become small letters,
    as Spark distinguishes tables without case. A name that is too long ends in a hash instead.
    """
    parts = table.split(".")
    named = "_".join(parts) if form is FlintForm.TODAY else parts[-1]
    name = PREFIX + _FORBIDDEN.sub(lambda match: f"%{ord(match[0]):02x}", named.lower()) + SUFFIX
    if len(name.encode()) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(table.lower().encode()).hexdigest()
    return PREFIX + digest + SUFFIX


def path_index_name(uri: str) -> str:
    """Name of the index of files that are not a table, by a hash of their location."""
    return f"{PREFIX}path_{hashlib.sha256(uri.encode()).hexdigest()[:40]}{SUFFIX}"


def is_index_name(name: str) -> bool:
    """Whether a name is that of exactly one skipping index."""
    is_ours = name.startswith(PREFIX) and name.endswith(SUFFIX)
    unescaped = _ESCAPED.sub("", name)
    is_plain = not _FORBIDDEN.search(unescaped) and "%" not in unescaped
    return is_ours and is_plain and len(name.encode("utf-8", "replace")) <= LONGEST_NAME


_ESCAPED = re.compile(r"%[0-9a-f]{2}")
_FORBIDDEN = re.compile(r"[\x00-\x20\"*+/\\|?#><,:%]")


_URI_PATH = "/-_.!~*'():@&=+$,;"
"""Characters that Java's URI leaves unchanged in a path, beyond letters and digits."""


def file_uri(path: str) -> str:
    """A Hadoop path (`file:/a b`) as Flint writes files: `file:///a%20b` (`Path.toUri`)."""
    scheme, separator, rest = path.partition(":")
    if not separator or "/" in scheme:
        return _quoted(path)
    if not rest.startswith("//"):
        return f"{scheme}://{_quoted(rest)}"
    authority, slash, inside = rest[2:].partition("/")
    return f"{scheme}://{authority}{slash}{_quoted(inside)}"


def _quoted(path: str) -> str:
    # Java quotes ASCII that is illegal and keeps other letters.
    return "".join(c if ord(c) > 127 else quote(c, safe=_URI_PATH) for c in path)


def document_id(uri: str) -> str:
    """Id of a file's document: SHA-1 of its `file_path`, in hexadecimal."""
    return hashlib.sha1(uri.encode(), usedforsecurity=False).hexdigest()
