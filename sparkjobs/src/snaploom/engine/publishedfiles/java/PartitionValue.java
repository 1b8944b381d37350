package snaploom.published;

import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.types.DataType;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/** Puts the one partition column of a row in the place of its name. */
final class PartitionValue extends AbstractPartialFunction {
  private final DataType type;

  PartitionValue(DataType type) {
    this.type = type;
  }

  public boolean isDefinedAt(Object node) {
    return node instanceof AttributeReference;
  }

  public Object applyOrElse(Object node, Function1 otherwise) {
    return node instanceof AttributeReference
        ? new BoundReference(0, type, true)
        : otherwise.apply(node);
  }
}
