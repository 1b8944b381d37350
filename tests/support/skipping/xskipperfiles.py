"""Metadata stores made by hand, independent of the product's writer, and small definitions.

A store of any version is Parquet written by pyarrow with Spark's schema JSON spelt out here, and
Java's serialised objects put together byte by byte.
"""

import io
import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from snaploom.skipping.core.definition import (
    IndexDefinition,
    ReaderFingerprint,
    SkippingDefinition,
    Target,
    column_term,
)
from snaploom.skipping.core.hashes import BloomFilter, ItemHashes

UDT = "io.xskipper.metadatastore.parquet.ParquetBaseClauseTranslator$BloomFilterMetaDataTypeUDT"

_METADATA = """
package io.xskipper.index.metadata;
import java.io.*;
import org.apache.spark.util.sketch.BloomFilter;

public abstract class MetadataType implements Serializable {
  public MetadataType() {}
}

public class BloomFilterMetaData extends MetadataType {
  private static final long serialVersionUID = 1L;
  public final BloomFilter bloomFilter;
  public BloomFilterMetaData(BloomFilter filter) { bloomFilter = filter; }
}

public class OwnDescriptors extends ObjectInputStream {
  public OwnDescriptors(InputStream in) throws IOException { super(in); }
  protected ObjectStreamClass readClassDescriptor() throws IOException, ClassNotFoundException {
    String name = super.readClassDescriptor().getName();
    return ObjectStreamClass.lookup(Class.forName(name, false, getClass().getClassLoader()));
  }
}

public class Probe implements java.util.function.Function {
  public Object apply(Object question) {
    try {
      DataInputStream in = new DataInputStream(new ByteArrayInputStream((byte[]) question));
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      if (in.readBoolean()) serialise(in, out); else probe(in, out);
      return out.toByteArray();
    } catch (Exception error) {
      throw new RuntimeException(error);
    }
  }

  private void serialise(DataInputStream in, ByteArrayOutputStream out) throws Exception {
    long items = in.readLong();
    long bits = BloomFilter.optimalNumOfBits(items, in.readDouble());
    BloomFilter filter = BloomFilter.create(BloomFilter.Version.V1, items, bits, 0);
    for (int i = in.readInt(); i > 0; i--) filter.putLong(in.readLong());
    for (int i = in.readInt(); i > 0; i--) filter.putString(text(in));
    ObjectOutputStream objects = new ObjectOutputStream(out);
    objects.writeObject(new BloomFilterMetaData(filter));
    objects.close();
  }

  private void probe(DataInputStream in, ByteArrayOutputStream out) throws Exception {
    byte[] stream = new byte[in.readInt()];
    in.readFully(stream);
    ObjectInputStream objects = new OwnDescriptors(new ByteArrayInputStream(stream));
    BloomFilter filter = ((BloomFilterMetaData) objects.readObject()).bloomFilter;
    for (int i = in.readInt(); i > 0; i--) write(out, filter.mightContainLong(in.readLong()));
    for (int i = in.readInt(); i > 0; i--) write(out, filter.mightContainString(text(in)));
  }

  private void write(ByteArrayOutputStream out, boolean answer) {
    out.write(answer ? 1 : 0);
  }

  private String text(DataInputStream in) throws Exception {
    byte[] bytes = new byte[in.readInt()];
    in.readFully(bytes);
    return new String(bytes, "UTF-8");
  }
}
"""

_TYPE = """
package io.xskipper.metadatastore.parquet;
import org.apache.spark.sql.types.*;

public class ParquetBaseClauseTranslator {
  public static class BloomFilterMetaDataTypeUDT extends UserDefinedType {
    public DataType sqlType() { return DataTypes.BinaryType; }
    public Object serialize(Object value) { return value; }
    public Object deserialize(Object value) { return value; }
    public Class userClass() { return byte[].class; }
  }
}
"""


class JavaBlooms:
    """Blooms as Java writes and reads them."""

    def __init__(self, spark: SparkSession) -> None:
        loader = _compiled(spark, _METADATA)
        self._probe = _instance(spark, loader, "io.xskipper.index.metadata.Probe")

    def serialised(
        self, items: int, false_positives: float, longs: Sequence[int], texts: Sequence[str]
    ) -> bytes:
        """The stream of a filter that holds longs and texts."""
        question = struct.pack(">?qd", True, items, false_positives) + _packed(longs, texts)
        return bytes(self._probe.apply(bytearray(question)))

    def might_contain(
        self, stream: bytes, longs: Sequence[int], texts: Sequence[str]
    ) -> list[bool]:
        """What Spark's filter in a stream answers."""
        question = struct.pack(">?i", False, len(stream)) + stream + _packed(longs, texts)
        return [each == 1 for each in bytes(self._probe.apply(bytearray(question)))]


def java_schema(spark: SparkSession, schema: str) -> str:
    """Spark's schema as Scala parses and prints it, with the reference's type to be found."""
    thread = spark._jvm.java.lang.Thread.currentThread()
    before = thread.getContextClassLoader()
    thread.setContextClassLoader(_compiled(spark, _TYPE))
    try:
        return str(spark._jvm.org.apache.spark.sql.types.DataType.fromJson(schema).json())
    finally:
        thread.setContextClassLoader(before)


def _compiled(spark: SparkSession, source: str) -> JavaObject:
    jvm = spark._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    compiler.setParentClassLoader(loader)
    compiler.cook(source)
    return compiler.getClassLoader()


def _instance(spark: SparkSession, loader: JavaObject, name: str) -> JavaObject:
    gateway = spark.sparkContext._gateway
    nothing = gateway.new_array(gateway.jvm.java.lang.Class, 0)
    made = loader.loadClass(name).getDeclaredConstructor(nothing)
    return made.newInstance(gateway.new_array(gateway.jvm.java.lang.Object, 0))


def _packed(longs: Sequence[int], texts: Sequence[str]) -> bytes:
    encoded = [text.encode() for text in texts]
    return b"".join(
        [
            struct.pack(f">i{len(longs)}q", len(longs), *longs),
            struct.pack(">i", len(encoded)),
            *(struct.pack(">i", len(each)) + each for each in encoded),
        ]
    )


ROW_METADATA = "org.apache.spark.sql.parquet.row.metadata"
OLD_BLOOM = "com.ibm.metaindex.metadata.index.types.BloomFilterMetaData"
NEW_BLOOM = "io.xskipper.index.metadata.BloomFilterMetaData"
OLD_PACKAGE = "com.ibm.metaindex.metadata.index.types"
IMPL = "org.apache.spark.util.sketch.BloomFilterImpl"
TABLE = "/data/t"


def index_of(
    index_id: str, kind: str, column: str, data_type: str, key_label: str = "", **parameters: str
) -> IndexDefinition:
    term = column_term(tuple(column.split("/")), data_type)
    return IndexDefinition(
        index_id, kind, (term,), tuple(sorted(parameters.items())), key_label=key_label
    )


def a_definition(
    *indexes: IndexDefinition, partitions: Sequence[tuple[str, str]] = (), uri: str = "file:/data/t"
) -> SkippingDefinition:
    return SkippingDefinition(
        Target(uri, format="parquet"),
        ReaderFingerprint("parquet"),
        indexes,
        partition_columns=tuple(partitions),
    )


def some_rows() -> pa.Table:
    """Two files: bounds 1 to 9, and no value."""
    return pa.table(
        {
            **identity(["file:/data/t/a.parquet", "file:/data/t/b.parquet"], [1000, 2000]),
            "i1.values": [5, 0],
            "i1.nulls": [0, 5],
            "i1.min": pa.array([1, None], pa.int32()),
            "i1.max": pa.array([9, None], pa.int32()),
        }
    )


def identity(paths: Sequence[str], modified: Sequence[int]) -> dict[str, pa.Array]:
    return {
        "path": pa.array(paths, pa.large_string()),
        "length": pa.array([10] * len(paths), pa.int64()),
        "modified": pa.array(modified, pa.int64()),
        "etag": pa.nulls(len(paths), pa.large_string()),
    }


# Spark's schema, spelt out.


def field(name: str, kind: object, metadata: Mapping[str, object] | None = None) -> object:
    return {
        "name": name,
        "type": kind,
        "nullable": name != "obj_name",
        "metadata": dict(metadata or {}),
    }


def struct_of(kind: str) -> object:
    return {"type": "struct", "fields": [field("min", kind), field("max", kind)]}


def array_of(kind: str) -> object:
    return {"type": "array", "elementType": kind, "containsNull": True}


def java_type(name: str) -> object:
    return {"type": "udt", "class": name, "pyClass": None, "sqlType": "binary"}


def index_metadata(name: str, columns: Sequence[str], **more: object) -> Mapping[str, object]:
    return {"index": {"name": name, "cols": list(columns), **more}}


def write_part(
    folder: Path,
    name: str,
    fields: Sequence[object],
    columns: Mapping[str, pa.Array],
    footer: Mapping[str, str] | None = None,
) -> None:
    """One part file; `footer` replaces the version of the Spark that wrote."""
    folder.mkdir(parents=True, exist_ok=True)
    schema = json.dumps({"type": "struct", "fields": list(fields)})
    version = {"org.apache.spark.version": "3.2.1"} if footer is None else footer
    table = pa.table(dict(columns)).replace_schema_metadata({ROW_METADATA: schema, **version})
    sink = io.BytesIO()
    pq.write_table(table, sink, use_deprecated_int96_timestamps=True, store_schema=True)
    (folder / name).write_bytes(sink.getvalue())


# Java's object stream, byte by byte.


def _utf(text: str) -> bytes:
    raw = text.encode("utf-16-be", "surrogatepass")
    units = [raw[at : at + 2].decode("utf-16-be", "surrogatepass") for at in range(0, len(raw), 2)]
    data = b"".join(unit.encode("utf-8", "surrogatepass") for unit in units)
    data = data.replace(b"\0", b"\xc0\x80")
    return struct.pack(">H", len(data)) + data


def java_string(text: str) -> bytes:
    return b"\x74" + _utf(text)


def java_class(
    name: str, fields: Sequence[tuple[str, str, str]] = (), flags: int = 2, parent: bytes = b"\x70"
) -> bytes:
    """A class descriptor: fields as type code, name and, for objects, type."""
    body = b"\x72" + _utf(name) + struct.pack(">qBH", 42, flags, len(fields))
    for code, each, kind in fields:
        body += code.encode() + _utf(each) + (java_string(kind) if code in "[L" else b"")
    return body + b"\x78" + parent


def java_int(value: int) -> bytes:
    number = java_class("java.lang.Number")
    described = java_class("java.lang.Integer", [("I", "value", "")], parent=number)
    return b"\x73" + described + struct.pack(">i", value)


def java_object(described: bytes, content: bytes) -> bytes:
    return b"\xac\xed\x00\x05\x73" + described + content


def java_bounds(minimum: bytes, maximum: bytes) -> bytes:
    """A version 0 minmax: two objects."""
    parent = java_class(f"{OLD_PACKAGE}.MetadataType")
    fields = [("L", "max", "Ljava/lang/Object;"), ("L", "min", "Ljava/lang/Object;")]
    described = java_class(f"{OLD_PACKAGE}.MinMaxMetaData", fields, parent=parent)
    return java_object(described, maximum + minimum)


def java_set(values: Sequence[bytes], stated: int | None = None) -> bytes:
    """A version 0 value list: Scala 2.11's hash set, which counts its elements."""
    fields = [("L", "values", "Lscala/collection/mutable/HashSet;")]
    described = java_class(f"{OLD_PACKAGE}.ValueListMetaData", fields)
    count = len(values) if stated is None else stated
    block = struct.pack(">iii?", 450, count, 5, False)
    content = b"\x77" + bytes([len(block)]) + block + b"".join(values) + b"\x78"
    hash_set = b"\x73" + java_class("scala.collection.mutable.HashSet", flags=3) + content
    return java_object(described, hash_set)


def java_bloom(serialised: bytes, name: str = NEW_BLOOM, block: int = 1024) -> bytes:
    """A bloom as Spark 3 wrote it: the filter's class has its two fields, without their values."""
    fields = [("L", "bloomFilter", "Lorg/apache/spark/util/sketch/BloomFilter;")]
    impl_fields = [
        ("I", "numHashFunctions", ""),
        ("L", "bits", "Lorg/apache/spark/util/sketch/BitArray;"),
    ]
    content = b""
    for at in range(0, len(serialised), block):
        part = serialised[at : at + block]
        short = len(part) < 256
        content += (
            struct.pack(">BB", 0x77, len(part)) if short else struct.pack(">Bi", 0x7A, len(part))
        )
        content += part
    impl = b"\x73" + java_class(IMPL, impl_fields, flags=3) + content + b"\x78"
    parent = java_class("io.xskipper.index.metadata.MetadataType")
    return java_object(java_class(name, fields, parent=parent), impl)


def bloom_of_longs(values: Sequence[int], items: int = 1000) -> bytes:
    bloom = BloomFilter.sized(items, 0.01)
    bloom.put(ItemHashes.of_longs(np.array(values, dtype=np.int64)))
    return bloom.serialised()
