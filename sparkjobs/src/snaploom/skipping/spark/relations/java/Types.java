package snaploom.skipping;

import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.UserDefinedType;

/**
 * Types as texts. Spark's own text of a struct does not quote the names of its fields, so that two
 * types may share one, and leaves out defaults and what columns of CHAR were declared as.
 */
final class Types {
  private Types() {}

  static String text(DataType type) {
    StringBuilder out = new StringBuilder();
    write(out, type);
    return out.toString();
  }

  private static void write(StringBuilder out, DataType type) {
    if (type instanceof StructType) {
      StructField[] fields = ((StructType) type).fields();
      out.append("struct<");
      for (int i = 0; i < fields.length; i++) {
        out.append(i == 0 ? "" : ",");
        if (fields[i].name().matches("[A-Za-z0-9_]+")) {
          out.append(fields[i].name());
        } else {
          Json.string(out, fields[i].name());
        }
        out.append(':');
        element(out, fields[i].dataType(), fields[i].nullable());
        if (!fields[i].metadata().equals(Metadata.empty())) {
          out.append(fields[i].metadata().json());
        }
      }
      out.append('>');
    } else if (type instanceof ArrayType) {
      out.append("array<");
      element(out, ((ArrayType) type).elementType(), ((ArrayType) type).containsNull());
      out.append('>');
    } else if (type instanceof MapType) {
      out.append("map<");
      write(out, ((MapType) type).keyType());
      out.append(',');
      element(out, ((MapType) type).valueType(), ((MapType) type).valueContainsNull());
      out.append('>');
    } else if (type instanceof ObjectType) {
      out.append("object ").append(((ObjectType) type).cls().getName());
    } else if (type instanceof UserDefinedType) {
      throw new Unwritable();
    } else {
      out.append(type.catalogString());
    }
  }

  private static void element(StringBuilder out, DataType type, boolean isNullable) {
    write(out, type);
    out.append(isNullable ? "" : "!");
  }
}
