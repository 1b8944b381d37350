"""Metadata stores of version 0 to 4 about the files of a proof's table, right or with faults.

The faults are the reference's (rule S28) and those that files changing underfoot lead to. What is
right comes from the facts that Spark gave, never from the product.

What the files of a proof's table hold, value by value, asked of Spark with skipping off.

Tests that write metadata about the files by hand, or need conditions at their edges, start here and
not from anything that the product keeps.

The places in which indexes are kept, and the ways in which they come there.

All must give the answers that Spark gives without them. A home that cannot hold an index holds
bounds of its columns instead, so that every home is asked the same conditions.
"""

import itertools
import math
import random
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql
from support.skipping.onequalsoff import IndexHome, IndexOf, IndexSet, path_of
from support.skipping.prooftables import ProofTable
from support.skipping.xskipperfiles import (
    NEW_BLOOM,
    OLD_BLOOM,
    UDT,
    JavaBlooms,
    array_of,
    field,
    index_metadata,
    java_bloom,
    java_bounds,
    java_class,
    java_set,
    java_string,
    java_type,
    struct_of,
    write_part,
)

from snaploom.errors import IndexNotFound
from snaploom.plugins.xskipper.javastream import read_bloom
from snaploom.skipping.lifecycle.interchange import ImportResult
from snaploom.skipping.spark.interfaces.enable import without_skipping
from snaploom.skipping.spark.interfaces.indexbuilder import skipping_index
from snaploom.skipping.spark.interfaces.manage import SkippingIndexes
from snaploom.skipping.statements.syntax import Subject

_numbers = itertools.count()

_BLOOM_TYPES = frozenset({"tinyint", "smallint", "int", "bigint", "string"})
_STORED_KINDS = ("MIN_MAX", "VALUE_SET", "BLOOM_FILTER")


class FolderHome:
    form = "NATIVE"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def held(self, table: ProofTable, indexes: IndexSet) -> IndexSet:
        return indexes

    def build(self, spark: SparkSession, table: ProofTable, indexes: IndexSet) -> str:
        location = self.new_location()
        builder = table.subject(skipping_index(spark)).stored(location, self.form)
        for index in indexes.indexes:
            builder = index.add_to(builder)
        if indexes.where:
            builder = builder.filter_by(indexes.where)
        builder.build()
        return location

    def new_location(self) -> str:
        return str(self._folder / f"home-{next(_numbers)}")


class XskipperHome(FolderHome):
    """Folders, with a metadata store of version 4 beside our own."""

    form = "XSKIPPER"

    def held(self, table: ProofTable, indexes: IndexSet) -> IndexSet:
        """What version 4 has a form for."""
        return replace(indexes, indexes=_stored(table, indexes.indexes, ()))


class ExportedHome(XskipperHome):
    """What we write as version 4, taken back as it is: our rows must be right for others, too."""

    def build(self, spark: SparkSession, table: ProofTable, indexes: IndexSet) -> str:
        (part,) = Path(super().build(spark, table, indexes)).glob("*/part-*.parquet")
        location = self.new_location()
        indexes_of = SkippingIndexes(spark, location)
        indexes_of.import_(subject_of(spark, table), str(part.parent), is_trusted=True)
        return location


class OpenSearchHome(FolderHome):
    """A cluster, or what behaves like one. It has one index of a table at a time."""

    def __init__(self, port: int) -> None:
        self._location = f"opensearch://127.0.0.1:{port}"

    def build(self, spark: SparkSession, table: ProofTable, indexes: IndexSet) -> str:
        indexes_of, subject = SkippingIndexes(spark, self._location), subject_of(spark, table)
        try:
            indexes_of.drop(subject)
            indexes_of.vacuum(subject)
        except IndexNotFound:
            pass
        return super().build(spark, table, indexes)

    def new_location(self) -> str:
        return self._location


class ImportedHome:
    """Metadata stores of the reference, imported.

    Trusted ones hold what is right. Those that are verified have the faults of the reference.
    """

    def __init__(self, folder: Path, blooms: JavaBlooms, version: int, is_trusted: bool) -> None:
        self._folder = folder
        self._writer = MetadataWriter(blooms, version)
        self._is_trusted = is_trusted
        self._facts: dict[str, Facts] = {}
        self.imports: list[ImportResult] = []
        """What imports did."""

    def held(self, table: ProofTable, indexes: IndexSet) -> IndexSet:
        """Bounds, sets and blooms of whole files; version 0 does not contain the day of a date."""
        unknown = ("date",) if self._writer.version == 0 else ()
        kept = _stored(table, indexes.indexes, unknown)
        return IndexSet(
            indexes.label, tuple(each for each in kept if each.type_name in _STORED_KINDS)
        )

    def build(self, spark: SparkSession, table: ProofTable, indexes: IndexSet) -> str:
        number = next(_numbers)
        store, location = self._folder / f"store-{number}", str(self._folder / f"home-{number}")
        if table.path not in self._facts:
            self._facts[table.path] = facts_of(spark, table)
        fault = None if self._is_trusted else random_faults(random.Random(f"{table.name} {number}"))
        self._writer.write(
            store,
            f"default.{table.name}" if table.by_catalog else table.path,
            self._facts[table.path],
            indexes.indexes,
            fault,
            table.partition_columns,
        )
        indexes_of, subject = SkippingIndexes(spark, location), subject_of(spark, table)
        self.imports.append(indexes_of.import_(subject, str(store), is_trusted=self._is_trusted))
        return location


def subject_of(spark: SparkSession, table: ProofTable) -> Subject:
    subject = table.subject(skipping_index(spark)).subject
    if subject is None:
        raise ValueError("an index has a subject")
    return subject


def held_sets(home: IndexHome, table: ProofTable, sets: Iterable[IndexSet]) -> list[IndexSet]:
    """Index sets as a home can hold them; all that it cannot hold whole make one set together."""
    whole: list[IndexSet] = []
    changed: list[IndexOf] = []
    for each in sets:
        held = home.held(table, each)
        if held == each:
            whole.append(each)
        elif each.label in _STORED_KINDS:
            whole.append(held)
        else:
            changed += held.indexes
    if changed:
        whole.append(IndexSet("REDUCED", _once(changed)))
    return whole


def _stored(
    table: ProofTable, indexes: Sequence[IndexOf], unknown: Sequence[str]
) -> tuple[IndexOf, ...]:
    """Indexes that a metadata store has a form for, and bounds for the others.

    Args:
        table: has the types.
        indexes: what is wanted.
        unknown: types of which the store has no values.
    """
    refused = ("timestamp_ntz", *unknown)
    kept: list[IndexOf] = []
    for index in indexes:
        types = [table.columns[name] for name in index.columns]
        is_kind = index.type_name in (*_STORED_KINDS, "PARTITION") and not index.expression
        is_bloom = index.type_name == "BLOOM_FILTER"
        if is_kind and not set(types) & set(refused) and (not is_bloom or types[0] in _BLOOM_TYPES):
            kept.append(index)
            continue
        kept += [
            IndexOf("MIN_MAX", (name,))
            for name, data_type in zip(index.columns, types, strict=True)
            if data_type not in refused
        ]
    return _once(kept)


def _once(indexes: Iterable[IndexOf]) -> tuple[IndexOf, ...]:
    return tuple({(each.type_name, each.columns): each for each in indexes}.values())


Plain = bool | int | float | Decimal | bytes
"""A value: days and microseconds since 1970 for dates and moments, bytes for text."""

_PLAIN_FORMS = {
    "string": "CAST({} AS binary)",
    "date": "unix_date({})",
    "timestamp": "unix_micros({})",
    "timestamp_ntz": "unix_micros(CAST({} AS timestamp))",
}
"""How Spark is asked for values; moments without zone are read in UTC, the session's zone."""


@dataclass(frozen=True)
class FileFacts:
    path: str
    """Its path, without scheme and authority."""
    modified: int
    """Milliseconds since 1970."""
    values: Mapping[str, Sequence[Plain]]
    """Distinct values that are not NULL, in Spark's order, by column or expression."""


@dataclass(frozen=True)
class Facts:
    """All files of a table."""

    types: Mapping[str, str]
    """Spark types, by column or expression."""
    files: tuple[FileFacts, ...]


def facts_of(spark: SparkSession, table: ProofTable, expressions: Sequence[str] = ()) -> Facts:
    """Read a table once, with skipping off.

    Args:
        spark: a session in UTC.
        table: its columns are read.
        expressions: what else is asked of each row.
    """
    texts = [*table.columns, *expressions]
    with without_skipping(spark):
        frame = table.frame(spark)
        schema = frame.select(*map(sql.expr, texts)).schema
        types = {
            text: field.dataType.simpleString()
            for text, field in zip(texts, schema.fields, strict=True)
        }
        asked = [sql.expr(_PLAIN_FORMS.get(types[text], "{}").format(text)) for text in texts]
        rows = frame.select(sql.col("_metadata.file_path").alias("file"), *asked).collect()
        paths = sorted(path_of(uri) for uri in frame.inputFiles())
    found: dict[str, list[tuple[object, ...]]] = {path: [] for path in paths}
    for row in rows:
        found[path_of(row[0])].append(tuple(row)[1:])
    files = tuple(_file(path, texts, types, held) for path, held in found.items())
    return Facts(types, files)


def order_of(value: Plain, data_type: str) -> tuple[int, object]:
    """The rank of a value in Spark's order: NaN is the greatest, text is compared by bytes."""
    if data_type in ("float", "double"):
        number = float(str(value))
        return (1, 0.0) if math.isnan(number) else (0, number)
    return 0, value


def _file(
    path: str, texts: Sequence[str], types: Mapping[str, str], rows: list[tuple[object, ...]]
) -> FileFacts:
    values: dict[str, Sequence[Plain]] = {}
    for place, text in enumerate(texts):
        column = [row[place] for row in rows]
        kept = [bytes(each) if isinstance(each, bytearray) else each for each in column]
        # By their looks, since NaN equals nothing and -0.0 equals 0.0.
        distinct = {repr(each): each for each in kept if each is not None}
        data_type = types[text]
        values[text] = sorted(distinct.values(), key=lambda each: order_of(each, data_type))
    return FileFacts(path, Path(path).stat().st_mtime_ns // 10**6, values)


_MICROS = 1_000_000
_NUMBERS = {
    "tinyint": ("java.lang.Byte", "B", ">b"),
    "smallint": ("java.lang.Short", "S", ">h"),
    "int": ("java.lang.Integer", "I", ">i"),
    "bigint": ("java.lang.Long", "J", ">q"),
    "float": ("java.lang.Float", "F", ">f"),
    "double": ("java.lang.Double", "D", ">d"),
}
_NO_OBJECT = b"\x70"


def java_value(value: Plain, data_type: str) -> bytes:
    """A value in its box.

    Raises:
        TypeError: version 0 cannot hold it so that it can be read again.
    """
    if data_type in _NUMBERS:
        name, code, form = _NUMBERS[data_type]
        number = java_class("java.lang.Number")
        described = java_class(name, [(code, "value", "")], parent=number)
        return b"\x73" + described + struct.pack(form, value)
    match value:
        case bool():
            described = java_class("java.lang.Boolean", [("Z", "value", "")])
            return b"\x73" + described + struct.pack(">?", value)
        case int() if data_type == "timestamp":
            return _timestamp(value)
        case bytes() if data_type == "string":
            return java_string(value.decode())
        case bytes() if data_type == "binary":
            return _bytes(value)
        case Decimal():
            return _decimal(value)
    raise TypeError(f"no Java object for a {data_type}")


def java_min_max(values: Sequence[Plain], data_type: str) -> bytes:
    """Bounds from their two values, or from none."""
    if not values:
        return java_bounds(_NO_OBJECT, _NO_OBJECT)
    return java_bounds(java_value(values[0], data_type), java_value(values[-1], data_type))


def java_value_list(values: Sequence[Plain], data_type: str) -> bytes:
    return java_set([java_value(value, data_type) for value in values])


def _timestamp(micros: int) -> bytes:
    """`java.sql.Timestamp`: whole seconds in the date it extends, and nanoseconds of its own."""
    seconds, rest = divmod(micros, _MICROS)
    date = java_class("java.util.Date", flags=3)
    described = java_class("java.sql.Timestamp", [("I", "nanos", "")], parent=date)
    block = b"\x77\x08" + struct.pack(">q", seconds * 1000) + b"\x78"
    return b"\x73" + described + block + struct.pack(">i", rest * 1000)


def _bytes(value: bytes) -> bytes:
    return b"\x75" + java_class("[B") + struct.pack(">i", len(value)) + value


def _decimal(value: Decimal) -> bytes:
    sign, _, exponent = value.as_tuple()
    whole = int(value.scaleb(-int(exponent), Context(prec=76)))
    magnitude = abs(whole).to_bytes((abs(whole).bit_length() + 7) // 8, "big")
    number = java_class("java.lang.Number")
    fields = [
        *(("I", name, "") for name in ("bitCount", "bitLength", "firstNonzeroByteNum")),
        *(("I", name, "") for name in ("lowestSetBit", "signum")),
        ("[", "magnitude", "[B"),
    ]
    integer = b"\x73" + java_class("java.math.BigInteger", fields, flags=3, parent=number)
    signum = 0 if whole == 0 else -1 if sign else 1
    integer += struct.pack(">iiiii", -1, -1, -2, -2, signum) + _bytes(magnitude) + b"\x78"
    scaled = [("I", "scale", ""), ("L", "intVal", "Ljava/math/BigInteger;")]
    described = java_class("java.math.BigDecimal", scaled, flags=3, parent=number)
    return b"\x73" + described + struct.pack(">i", -int(exponent)) + integer + b"\x78"


VERSIONS = (0, 1, 2, 3, 4)
_ITEMS, _FALSE_POSITIVES = 50, 0.01
_JSON = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}
_NAMES = {"MIN_MAX": "minmax", "VALUE_SET": "valuelist", "BLOOM_FILTER": "bloomfilter"}

_ARROW = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}

Kept = Sequence[Plain] | None
"""What an index contains about a file: bounds, a set or a bloom's values; None for a NULL."""

Fault = Callable[[Kept, str], Kept]
"""What is written instead, of values in Spark's order and their type."""


def hidden_nan(kept: Kept, data_type: str) -> Kept:
    return kept and [each for each in kept if not (isinstance(each, float) and math.isnan(each))]


def utf16_order(kept: Kept, data_type: str) -> Kept:
    """The least and greatest of text as Java compares it."""
    if kept is None or data_type != "string":
        return kept
    return sorted(kept, key=lambda each: bytes(each).decode().encode("utf-16-be"))


def forgotten_greatest(kept: Kept, data_type: str) -> Kept:
    """The file was written again within the millisecond, with a value more."""
    return kept[:-1] if kept and len(kept) > 1 else kept


def forgotten_least(kept: Kept, data_type: str) -> Kept:
    """The same, at the other end."""
    return kept[1:] if kept and len(kept) > 1 else kept


def null_for_no_statistics(kept: Kept, data_type: str) -> Kept:
    """A NULL, which means that there is no value, where a footer had no statistics."""
    return None


def cut_text(kept: Kept, data_type: str) -> Kept:
    """Bounds that the writer of a footer cut, taken as they are."""
    if kept is None or data_type != "string":
        return kept
    return [bytes(each).decode()[:2].encode() for each in kept]


def whole_milliseconds(kept: Kept, data_type: str) -> Kept:
    """Moments of a store that keeps milliseconds."""
    if kept is None or data_type != "timestamp":
        return kept
    return [int(each) // 1000 * 1000 for each in kept]


def another_calendar(kept: Kept, data_type: str) -> Kept:
    """Days of the calendar that was used before 1582, some days off."""
    if kept is None or data_type not in ("date", "timestamp"):
        return kept
    unit = 1 if data_type == "date" else 86_400_000_000
    old = -141_427 * unit
    return [int(each) + 9 * unit if int(each) < old else each for each in kept]


FAULTS: Mapping[str, Fault] = {
    "NaN is hidden": hidden_nan,
    "text in the order of UTF-16": utf16_order,
    "the greatest value is forgotten": forgotten_greatest,
    "the least value is forgotten": forgotten_least,
    "NULL for a file without statistics": null_for_no_statistics,
    "text is cut": cut_text,
    "moments in whole milliseconds": whole_milliseconds,
    "the old calendar": another_calendar,
}


@dataclass(frozen=True)
class MetadataWriter:
    blooms: JavaBlooms
    """Spark's own filters."""
    version: int
    footer: Mapping[str, str] | None = None
    """What footers contain about the Spark that wrote; by default one of today's calendar."""

    def write(
        self,
        folder: Path,
        identifier: str,
        facts: Facts,
        indexes: Sequence[IndexOf],
        fault: Callable[[IndexOf, FileFacts], Fault] | None = None,
        partitions: Sequence[str] = (),
    ) -> None:
        """One part file about all files.

        Args:
            folder: of the store.
            identifier: of the table, as version 1 and later have it.
            facts: the truth about the files.
            indexes: over one column each.
            fault: what goes wrong for an index and a file.
            partitions: partition columns, which version 4 keeps.
        """
        owner = {} if self.version == 0 else {"tableIdentifier": identifier}
        named = field("obj_name", "string", {"version": self.version, **owner})
        names = [f"{file.path}#{file.modified}" for file in facts.files]
        fields: list[object] = [named]
        columns: dict[str, pa.Array] = {"obj_name": pa.array(names)}
        for name in partitions if self.version >= 4 else ():
            values = [next(iter(file.values[name]), None) for file in facts.files]
            columns[f"virtual_{name}"] = _array(values, facts.types[name])
            fields.append(field(f"virtual_{name}", _json(facts.types[name])))
        for index in indexes:
            (name,) = index.columns
            kept = [
                fault(index, file)(file.values[name], facts.types[name])
                if fault is not None
                else file.values[name]
                for file in facts.files
            ]
            column = self._name(name, _NAMES[index.type_name])
            fields.append(self._field(column, index, facts.types[name], identifier))
            columns[column] = self._column(index, kept, facts.types[name])
        write_part(folder, "part-0.snappy.parquet", fields, columns, self.footer)

    def _name(self, column: str, index: str) -> str:
        if self.version < 2:
            return f"{column}_{index}"
        escaped = column.replace("#", "##").replace(".", "$#$")
        return f"{escaped}_{index}_{len(escaped)}"

    def _field(self, column: str, index: IndexOf, data_type: str, identifier: str) -> object:
        more: dict[str, object] = {}
        if self.version == 0:
            more["tableIdentifier"] = identifier.removeprefix("/")
        if index.type_name == "BLOOM_FILTER":
            more["params"] = self._parameters()
        metadata = index_metadata(_NAMES[index.type_name], index.columns, **more)
        if index.type_name == "BLOOM_FILTER" or self.version == 0:
            return field(column, java_type(UDT), metadata)
        is_set = index.type_name == "VALUE_SET"
        form = array_of(_json(data_type)) if is_set else struct_of(_json(data_type))
        return field(column, form, metadata)

    def _parameters(self) -> object:
        prefix = "spark.ibm.metaindex" if self.version < 3 else "io.xskipper"
        parameters = {
            f"{prefix}.index.bloom.fpp": str(_FALSE_POSITIVES),
            f"{prefix}.index.bloom.ndv": str(_ITEMS),
        }
        if self.version >= 3:
            return parameters
        return [f"{name}:{value}" for name, value in parameters.items()]

    def _column(self, index: IndexOf, kept: Sequence[Kept], data_type: str) -> pa.Array:
        match index.type_name:
            case "BLOOM_FILTER":
                return pa.array([self._bloom(each, data_type) for each in kept], pa.binary())
            case "MIN_MAX" if self.version == 0:
                bounds = [java_min_max(each or (), data_type) for each in kept]
                return pa.array(bounds, pa.binary())
            case "VALUE_SET" if self.version == 0:
                return pa.array([java_value_list(each or (), data_type) for each in kept])
            case "VALUE_SET":
                held = [each or None for each in kept]
                values = _array([value for each in held for value in each or ()], data_type)
                return _lists(held, values)
        return _structs(kept, data_type)

    def _bloom(self, kept: Kept, data_type: str) -> bytes | None:
        if kept is None:
            return None
        texts = [bytes(each).decode() for each in kept] if data_type == "string" else []
        longs = [] if texts else [int(each) for each in kept]
        stream = self.blooms.serialised(_ITEMS, _FALSE_POSITIVES, longs, texts)
        return java_bloom(read_bloom(stream), OLD_BLOOM if self.version < 3 else NEW_BLOOM)


def random_faults(rng: random.Random) -> Callable[[IndexOf, FileFacts], Fault]:
    """What the reference gets wrong everywhere, and in some files one thing more."""
    chosen: dict[str, tuple[str, Fault]] = {}

    def fault(index: IndexOf, file: FileFacts) -> Fault:
        columns = sorted(file.values)
        if file.path not in chosen:
            more = rng.choice(list(FAULTS.values())) if rng.random() < 0.5 else hidden_nan
            chosen[file.path] = rng.choice(columns), more
        column, more = chosen[file.path]

        def wrong(kept: Kept, data_type: str) -> Kept:
            usual = utf16_order(hidden_nan(kept, data_type), data_type)
            return more(usual, data_type) if column in index.columns else usual

        return wrong

    return fault


def _json(data_type: str) -> str:
    return _JSON.get(data_type, data_type)


def _array(values: Sequence[Plain | None], data_type: str) -> pa.Array:
    if data_type.startswith("decimal("):
        precision, scale = map(int, data_type[8:-1].split(","))
        return pa.array(values, pa.decimal128(precision, scale))
    kept_as = _ARROW[data_type]
    if data_type == "string":
        return pa.array([None if v is None else bytes(v).decode() for v in values], kept_as)
    if data_type == "timestamp":
        return pa.array(values, pa.int64()).view(kept_as)
    return pa.array(values, kept_as)


def _lists(held: Sequence[Kept], values: pa.Array) -> pa.Array:
    starts: list[int | None] = []
    at = 0
    for each in held:
        starts.append(None if each is None else at)
        at += len(each or ())
    return pa.ListArray.from_arrays(pa.array([*starts, at], pa.int32()), values)


def _structs(kept: Sequence[Kept], data_type: str) -> pa.Array:
    ends = [_array([each[at] if each else None for each in kept], data_type) for at in (0, -1)]
    names = [pa.field(name, ends[0].type) for name in ("min", "max")]
    absent = pa.array([not each for each in kept])
    return pa.StructArray.from_arrays(ends, fields=names, mask=absent)
