package snaploom.skipping;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.unsafe.types.VariantVal;

/**
 * Values in Catalyst's internal form: dates are days, timestamps are microseconds. Values of
 * different content have different texts, or none: then `Unwritable` is thrown.
 */
final class Values {
  private Values() {}

  static void write(StringBuilder out, Object value, DataType type) {
    if (value == null) {
      out.append("null");
    } else if (type instanceof BooleanType && value instanceof Boolean) {
      out.append(value.toString());
    } else if (type instanceof FloatType || type instanceof DoubleType) {
      Json.string(out, value.toString());
    } else if (type instanceof DecimalType && value instanceof Decimal) {
      Json.string(out, ((Decimal) value).toJavaBigDecimal().toPlainString());
    } else if (type instanceof StringType && value instanceof UTF8String) {
      Json.utf8(out, ((UTF8String) value).getBytes());
    } else if (type instanceof BinaryType && value instanceof byte[]) {
      Json.hex(out, (byte[]) value);
    } else if (isWhole(value)) {
      out.append(value.toString());
    } else if (value instanceof CalendarInterval) {
      CalendarInterval interval = (CalendarInterval) value;
      out.append("{\"interval\":[").append(interval.months).append(',').append(interval.days);
      out.append(',').append(interval.microseconds).append("]}");
    } else if (value instanceof VariantVal) {
      out.append("{\"variant\":[");
      Json.hex(out, ((VariantVal) value).getMetadata());
      out.append(',');
      Json.hex(out, ((VariantVal) value).getValue());
      out.append("]}");
    } else if (type instanceof ArrayType && value instanceof ArrayData) {
      array(out, (ArrayData) value, ((ArrayType) type).elementType());
    } else if (type instanceof MapType && value instanceof MapData) {
      // In the order of the entries, by which functions such as map_keys differ.
      out.append("{\"keys\":");
      array(out, ((MapData) value).keyArray(), ((MapType) type).keyType());
      out.append(",\"values\":");
      array(out, ((MapData) value).valueArray(), ((MapType) type).valueType());
      out.append('}');
    } else if (type instanceof StructType && value instanceof InternalRow) {
      struct(out, (InternalRow) value, ((StructType) type).fields());
    } else if (type instanceof ObjectType) {
      out.append("{\"object\":");
      Arguments.write(out, value);
      out.append('}');
    } else {
      throw new Unwritable();
    }
  }

  private static void array(StringBuilder out, ArrayData values, DataType type) {
    out.append('[');
    for (int i = 0; i < values.numElements(); i++) {
      out.append(i == 0 ? "" : ",");
      write(out, values.isNullAt(i) ? null : values.get(i, type), type);
    }
    out.append(']');
  }

  private static void struct(StringBuilder out, InternalRow row, StructField[] fields) {
    out.append("{\"fields\":[");
    for (int i = 0; i < fields.length; i++) {
      out.append(i == 0 ? "" : ",");
      DataType type = fields[i].dataType();
      write(out, row.isNullAt(i) ? null : row.get(i, type), type);
    }
    out.append("]}");
  }

  private static boolean isWhole(Object value) {
    return value instanceof Byte
        || value instanceof Short
        || value instanceof Integer
        || value instanceof Long;
  }
}
