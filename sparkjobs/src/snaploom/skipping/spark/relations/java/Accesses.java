package snaploom.skipping;

import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ElementAt;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetArrayItem;
import org.apache.spark.sql.catalyst.expressions.GetArrayStructFields;
import org.apache.spark.sql.catalyst.expressions.GetMapValue;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The part of a column that a path into it reads.
 *
 * <p>Spark narrows the type of a column to the fields that a query needs, before our rule sees it.
 * So in `a.b = 5` the type of `a` says which other fields a query has, and nothing of the condition.
 * Written down is the type with the one field on the path: the same in every query.
 */
final class Accesses {
  private Accesses() {}

  /** The name of the field as the schema spells it. */
  static String field(Expression e) {
    if (e instanceof GetArrayStructFields) {
      return ((GetArrayStructFields) e).field().name();
    }
    GetStructField access = (GetStructField) e;
    return ((StructType) access.child().dataType()).fields()[access.ordinal()].name();
  }

  /** The type that is read of the first child, where `read` is read of an expression. */
  static DataType readOfChild(Expression e, Expression child, DataType read) {
    DataType whole = child.dataType();
    if (!isPath(child)) {
      return whole;
    }
    if (e instanceof GetStructField) {
      return only(field(e), read);
    }
    if (e instanceof GetArrayStructFields && read instanceof ArrayType) {
      ArrayType found = (ArrayType) whole;
      return new ArrayType(
          only(field(e), ((ArrayType) read).elementType()), found.containsNull());
    }
    if (e instanceof GetArrayItem || (e instanceof ElementAt && whole instanceof ArrayType)) {
      return new ArrayType(read, ((ArrayType) whole).containsNull());
    }
    if (e instanceof GetMapValue || (e instanceof ElementAt && whole instanceof MapType)) {
      MapType found = (MapType) whole;
      return new MapType(found.keyType(), read, found.valueContainsNull());
    }
    return whole;
  }

  /** Whether an expression is a column, or a path that ends in one. */
  private static boolean isPath(Expression e) {
    if (e instanceof Alias) {
      return isPath(((Alias) e).child());
    }
    boolean isStep =
        e instanceof GetStructField
            || e instanceof GetArrayStructFields
            || e instanceof GetArrayItem
            || e instanceof GetMapValue
            || e instanceof ElementAt;
    return e instanceof AttributeReference
        || (isStep && isPath((Expression) e.children().head()));
  }

  private static StructType only(String name, DataType type) {
    return new StructType(
        new StructField[] {new StructField(name, type, true, Metadata.empty())});
  }
}
