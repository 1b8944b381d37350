package snaploom.skipping;

import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.unsafe.types.UTF8String;

/** Values in Catalyst's internal form: dates are days, timestamps are microseconds. */
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
    } else {
      out.append(Json.OPAQUE);
    }
  }

  private static boolean isWhole(Object value) {
    return value instanceof Byte
        || value instanceof Short
        || value instanceof Integer
        || value instanceof Long;
  }
}
