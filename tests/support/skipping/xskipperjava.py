"""The reference's classes, as far as Java's serialisation sees them, compiled in Spark's JVM.

Like the reference, they read a stream with the descriptors of their own classes, not the stream's.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

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
