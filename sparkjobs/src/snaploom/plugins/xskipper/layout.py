"""Declarations of a metadata store: version, table schema, indexes, encrypted columns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from snaploom.errors import IndexUnreadable
from snaploom.plugins.xskipper import names
from snaploom.plugins.xskipper.javastream import UDT_CLASS
from snaploom.types.schemas import SQL_NAMES

# Column key lists: encrypted columns of a store, by keys.


def column_keys(columns: Mapping[str, Sequence[str]]) -> str:
    """The column key list as Parquet's Hadoop client writes it: `label:leaf,leaf;label:leaf`."""
    return ";".join(f"{label}:{','.join(leaves)}" for label, leaves in columns.items())


def parse_column_keys(text: str) -> dict[str, tuple[str, ...]]:
    """Leaf paths by key label, from a column key list; `IndexUnreadable` for another form.

    Parquet's Hadoop client takes entries with exactly one colon, so others are refused here too.
    """
    found: dict[str, tuple[str, ...]] = {}
    for entry in filter(None, (part.strip() for part in text.split(";"))):
        label, _, leaves = (part.strip() for part in entry.partition(":"))
        names = tuple(name.strip() for name in leaves.split(",") if name.strip())
        if entry.count(":") != 1 or not label or not names:
            raise IndexUnreadable(
                "a column key list cannot be parsed",
                found=entry,
                expected="label:leaf,leaf",
                hint="write KEY: column, column; KEY: column",
            )
        found[label] = found.get(label, ()) + names
    return found


# Spark's schema as JSON, with the metadata of each field, which define a store's columns.

ROW_METADATA = b"org.apache.spark.sql.parquet.row.metadata"
"""Footer key of the schema."""

SPARK_VERSION = b"org.apache.spark.version"
"""Footer key of the Spark that wrote, which decides the calendar of old dates and timestamps."""

JsonObject = Mapping[str, object]

_JSON_NAMES = {catalog: name for name, catalog in SQL_NAMES.items()}


@dataclass(frozen=True)
class AtomType:
    """A type without parts, by its `catalogString`."""

    name: str


@dataclass(frozen=True)
class StructType:
    """A struct."""

    fields: tuple[SchemaField, ...]

    def field(self, name: str) -> SchemaField | None:
        return next((found for found in self.fields if found.name == name), None)


@dataclass(frozen=True)
class ArrayType:
    """An array."""

    element: DataType
    contains_null: bool = True


@dataclass(frozen=True)
class UserType:
    """A user-defined type of Java, stored as another type."""

    class_name: str
    storage: DataType


@dataclass(frozen=True)
class OtherType:
    """A type that no store has: a map, or one that Spark did not have when this was written."""


DataType = AtomType | StructType | ArrayType | UserType | OtherType


@dataclass(frozen=True)
class SchemaField:
    """A column or a field of a struct."""

    name: str
    data_type: DataType
    nullable: bool = True
    metadata: JsonObject = field(default_factory=dict)


def parse_schema(text: bytes | str) -> StructType:
    """Parse a schema; `IndexUnreadable` if it is none."""
    try:
        parsed = _parse_type(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _no_schema() from error
    if not isinstance(parsed, StructType):
        raise _no_schema()
    return parsed


def dump_schema(schema: StructType) -> str:
    """A schema as Spark writes it."""
    return json.dumps(_dump_type(schema), ensure_ascii=False, separators=(",", ":"))


def _no_schema() -> IndexUnreadable:
    return IndexUnreadable(
        "a part of the metadata store has a schema that cannot be parsed",
        expected="Spark's schema as JSON",
        hint="create the index anew instead of importing it",
    )


def _parse_type(value: object) -> DataType:
    if isinstance(value, str):
        return AtomType(SQL_NAMES.get(value, value))
    described = cast(dict[str, object], value)
    match described["type"]:
        case "struct":
            fields = cast(list[dict[str, object]], described["fields"])
            return StructType(tuple(_parse_field(each) for each in fields))
        case "array":
            return ArrayType(
                _parse_type(described["elementType"]), described["containsNull"] is True
            )
        case "udt":
            return UserType(str(described.get("class", "")), _parse_type(described["sqlType"]))
    return OtherType()


def _parse_field(value: dict[str, object]) -> SchemaField:
    metadata = value.get("metadata", {})
    return SchemaField(
        name=str(value["name"]),
        data_type=_parse_type(value["type"]),
        nullable=value.get("nullable", True) is True,
        metadata=dict(cast(dict[str, object], metadata)),
    )


def _dump_type(data_type: DataType) -> object:
    match data_type:
        case AtomType(name):
            return _JSON_NAMES.get(name, name)
        case StructType(fields):
            return {
                "type": "struct",
                "fields": [
                    {
                        "name": each.name,
                        "type": _dump_type(each.data_type),
                        "nullable": each.nullable,
                        "metadata": dict(each.metadata),
                    }
                    for each in fields
                ],
            }
        case ArrayType(element, contains_null):
            return {
                "type": "array",
                "elementType": _dump_type(element),
                "containsNull": contains_null,
            }
        case UserType(class_name, storage):
            # Spark's parser of a Java type needs the key `pyClass`, null or not.
            return {
                "type": "udt",
                "class": class_name,
                "pyClass": None,
                "sqlType": _dump_type(storage),
            }
        case OtherType():
            raise ValueError("a type that was not parsed cannot be written")


# Layout of a metadata store: version, table, indexes, partition columns, keys.

MIN_MAX, VALUE_LIST, BLOOM = "minmax", "valuelist", "bloomfilter"
"""Names of the store's index types."""

FPP, NDV = "io.xskipper.index.bloom.fpp", "io.xskipper.index.bloom.ndv"
"""Parameters of a bloom filter, since version 3."""

DEFAULT_FPP, DEFAULT_NDV = "0.01", "100000"
"""Defaults of parameters that are not stored."""

COLUMN_KEYS = "encryption.column.keys"
FOOTER_KEY = "encryption.footer.key"
PLAINTEXT_FOOTER = "encryption.plaintext.footer"

_OLD_PREFIX, _NEW_PREFIX = "spark.ibm.metaindex.", "io.xskipper."
_PARAMETERS_ARE_A_MAP = 3
_IDENTIFIER_IN_ONE_PLACE = 1


@dataclass(frozen=True)
class StoredIndex:
    """One index of a store."""

    name: str
    """Its type, as the store calls it: `minmax`, `valuelist`, `bloomfilter`, or another."""
    columns: tuple[str, ...]
    """Indexed columns, in lower case, nested fields as `a.b`."""
    column: str
    data_type: str | None
    """Spark type of its values; None where the store does not have it (blooms, version 0)."""
    parameters: tuple[tuple[str, str], ...] = ()
    """Parameters by their names since version 3, in order of names."""
    key_label: str = ""
    """Key of its columns; empty for none."""

    @property
    def label(self) -> str:
        """Notation for people: `minmax(price)`."""
        return f"{self.name}({', '.join(self.columns)})"


@dataclass(frozen=True)
class Encryption:
    """Encryption of a store; labels only."""

    footer_key: str
    """Label of the footer's key."""
    columns: Mapping[str, tuple[str, ...]]
    plaintext_footer: bool = False
    """Whether footers stay readable without a key."""


@dataclass(frozen=True)
class Layout:
    """Declarations of a store."""

    version: int
    """0 to 4; 0 where it has none."""
    table_identifier: str
    """The table, see `objectnames`."""
    indexes: tuple[StoredIndex, ...]
    partitions: tuple[tuple[str, str], ...] = ()
    """Partition columns with their Spark types, since version 4."""
    encryption: Encryption | None = None
    """Encryption; None without."""


def read_layout(schema: StructType) -> Layout:
    """Layout that a schema declares; `IndexUnreadable` for newer or foreign ones."""
    file_name = schema.field(names.OBJECT_NAME)
    if file_name is None:
        raise _corrupt("there is no column obj_name", ", ".join(f.name for f in schema.fields))
    version = file_name.metadata.get("version", 0)
    if not isinstance(version, int) or isinstance(version, bool) or version < 0:
        raise _corrupt("the version is not a natural number", str(version))
    if version > names.NEWEST_VERSION:
        raise IndexUnreadable(
            "the metadata store is of a newer version than this Snaploom reads",
            found=f"version {version}",
            expected=f"at most version {names.NEWEST_VERSION}",
        )
    described = [
        (each, cast(Mapping[str, object], each.metadata["index"]))
        for each in schema.fields
        if isinstance(each.metadata.get("index"), dict)
    ]
    return Layout(
        version=version,
        table_identifier=_identifier(file_name, [metadata for _, metadata in described], version),
        indexes=tuple(_index(each, metadata, version) for each, metadata in described),
        partitions=_partitions(schema, version),
        encryption=_encryption(file_name.metadata),
    )


def write_layout(layout: Layout) -> StructType:
    """The schema of a version 4 store."""
    master: dict[str, object] = {
        "tableIdentifier": layout.table_identifier,
        "version": names.NEWEST_VERSION,
    }
    if layout.encryption is not None:
        keys: dict[str, object] = {
            COLUMN_KEYS: column_keys(layout.encryption.columns),
            FOOTER_KEY: layout.encryption.footer_key,
        }
        if layout.encryption.plaintext_footer:
            keys[PLAINTEXT_FOOTER] = "true"
        master["encryption"] = keys
    fields = [SchemaField(names.OBJECT_NAME, AtomType("string"), nullable=False, metadata=master)]
    fields += [
        SchemaField(names.virtual_name(name), AtomType(data_type))
        for name, data_type in layout.partitions
    ]
    fields += [
        SchemaField(index.column, value_type(index), metadata={"index": _index_metadata(index)})
        for index in layout.indexes
    ]
    return StructType(tuple(fields))


def value_type(index: StoredIndex) -> DataType:
    """Spark type of an index's column in version 4."""
    if index.name == BLOOM:
        return UserType(UDT_CLASS, AtomType("binary"))
    atom = AtomType(str(index.data_type))
    if index.name == VALUE_LIST:
        return ArrayType(atom)
    return StructType((SchemaField("min", atom), SchemaField("max", atom)))


def leaf_paths(index: StoredIndex) -> tuple[str, ...]:
    """Paths of the leaf columns of an index in version 4, as Parquet's schema has them."""
    if index.name == BLOOM:
        return (index.column,)
    if index.name == VALUE_LIST:
        return (f"{index.column}.list.element",)
    return (f"{index.column}.min", f"{index.column}.max")


def check_keys(layout: Layout, leaves: Mapping[str, tuple[str, ...]]) -> None:
    """Raise `IndexUnreadable` if indexes name other keys than the column key list (rule S29)."""
    listed = layout.encryption.columns if layout.encryption is not None else {}
    label_of = {leaf: label for label, paths in listed.items() for leaf in paths}
    for index in layout.indexes:
        labels = {label_of.get(leaf, "") for leaf in leaves.get(index.column, ())}
        if labels - {index.key_label}:
            raise _corrupt(
                f"the key of {index.label} is not the one in the column key list",
                f"{index.key_label or 'none'} against {', '.join(sorted(labels)) or 'none'}",
            )


def _identifier(file_name: SchemaField, indexes: list[Mapping[str, object]], version: int) -> str:
    owners = [file_name.metadata] if version >= _IDENTIFIER_IN_ONE_PLACE else indexes
    found = {each["tableIdentifier"] for each in owners if "tableIdentifier" in each}
    if len(found) != 1:
        names = ", ".join(sorted(map(str, found)))
        raise _corrupt("the store does not name one table", names or "no tableIdentifier")
    return str(found.pop())


def _index(described: SchemaField, metadata: Mapping[str, object], version: int) -> StoredIndex:
    name, columns = metadata.get("name"), metadata.get("cols")
    if not isinstance(name, str) or not isinstance(columns, list) or not columns:
        raise _corrupt("a column has no name or columns of its index", described.name)
    return StoredIndex(
        name=name,
        columns=tuple(str(column) for column in columns),
        column=described.name,
        data_type=_values_type(described.data_type),
        parameters=_parameters(metadata.get("params"), version),
        key_label=str(metadata.get("key_metadata", "")),
    )


def _values_type(data_type: DataType) -> str | None:
    match data_type:
        case ArrayType(AtomType(name)):
            return name
        case StructType():
            types = {each.data_type for each in data_type.fields}
            names = {each.name for each in data_type.fields}
            only = types.pop() if len(types) == 1 and names == {"min", "max"} else None
            return only.name if isinstance(only, AtomType) else None
    return None


def _parameters(stored: object, version: int) -> tuple[tuple[str, str], ...]:
    if stored is None:
        return ()
    if version < _PARAMETERS_ARE_A_MAP and isinstance(stored, list):
        pairs = [str(text).partition(":") for text in stored]
        found = {name: value for name, colon, value in pairs if colon}
    elif isinstance(stored, dict):
        found = {str(name): str(value) for name, value in stored.items()}
    else:
        raise _corrupt("parameters of an index are of another form", type(stored).__name__)
    renamed = {
        _NEW_PREFIX + name.removeprefix(_OLD_PREFIX) if name.startswith(_OLD_PREFIX) else name: v
        for name, v in found.items()
    }
    return tuple(sorted(renamed.items()))


def _partitions(schema: StructType, version: int) -> tuple[tuple[str, str], ...]:
    if version < names.NEWEST_VERSION:
        return ()
    return tuple(
        (each.name.removeprefix(names.VIRTUAL_PREFIX), each.data_type.name)
        for each in schema.fields
        if each.name.startswith(names.VIRTUAL_PREFIX)
        and "index" not in each.metadata
        and isinstance(each.data_type, AtomType)
    )


def _encryption(metadata: Mapping[str, object]) -> Encryption | None:
    stored = metadata.get("encryption")
    if not isinstance(stored, dict):
        return None
    if not isinstance(stored.get(COLUMN_KEYS), str) or not isinstance(stored.get(FOOTER_KEY), str):
        raise _corrupt("the encryption has no footer key or column key list", "")
    return Encryption(
        footer_key=stored[FOOTER_KEY],
        columns=parse_column_keys(stored[COLUMN_KEYS]),
        plaintext_footer=str(stored.get(PLAINTEXT_FOOTER, "false")).lower() == "true",
    )


def _index_metadata(index: StoredIndex) -> dict[str, object]:
    metadata: dict[str, object] = {"name": index.name, "cols": list(index.columns)}
    if index.parameters:
        metadata["params"] = dict(index.parameters)
    if index.key_label:
        metadata["key_metadata"] = index.key_label
    return metadata


def _corrupt(message: str, found: str) -> IndexUnreadable:
    return IndexUnreadable(
        f"the metadata store is corrupt: {message}",
        found=found or None,
        expected="a store of version 0 to 4",
    )
