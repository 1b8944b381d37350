package snaploom.skipping;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetArrayStructFields;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedLambdaVariable;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.types.DataType;
import scala.Product;

/**
 * Writes expressions as JSON arrays. Two texts without "?" are equal only when Spark computes the
 * same: everything that an expression has is in its text, or "?" stands in its place.
 */
final class Expressions {
  /** Where Spark keeps the declared type of a CHAR or VARCHAR column. */
  private static final String CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING";

  private static final int LONGEST_TEXT = 300;

  private final StringBuilder out;
  private final Map names;

  /** Names of the relation's columns by the id of their attribute (Long). */
  Expressions(StringBuilder out, Map names) {
    this.out = out;
    this.names = names;
  }

  void write(Expression e) {
    write(e, e.dataType());
  }

  /** The type of an access is that of what is read of it: see `Accesses`. */
  private void write(Expression e, DataType read) {
    if (e instanceof Alias) {
      write(((Alias) e).child(), read);
    } else if (e instanceof AttributeReference) {
      attribute((AttributeReference) e, read);
    } else if (e instanceof Literal || e instanceof InSet) {
      constants(e);
    } else if (isUnknown(e)) {
      unknown(e);
    } else if (e instanceof And || e instanceof Or) {
      chain(e);
    } else if (e instanceof IsNull || e instanceof IsNotNull) {
      ofNull(e);
    } else if (e instanceof GetStructField || e instanceof GetArrayStructFields) {
      // By name: positions depend on which fields a query reads.
      out.append('[');
      Json.string(out, e.getClass().getSimpleName());
      out.append(",{\"name\":");
      Json.string(out, Accesses.field(e));
      out.append('}');
      children(e, read);
    } else {
      general(e, read);
    }
  }

  private static boolean isUnknown(Expression e) {
    return !e.deterministic()
        || e instanceof PlanExpression
        || e instanceof PythonUDF
        || e instanceof UserDefinedExpression
        || e instanceof NamedLambdaVariable
        || !(e instanceof Product)
        || !States.isOfSpark(e.getClass())
        || !States.isWhole((Product) e);
  }

  private void unknown(Expression e) {
    String text;
    try {
      text = e.sql();
    } catch (Exception noSql) {
      text = e.getClass().getSimpleName();
    }
    out.append("[\"?\",");
    Json.string(out, text.length() > LONGEST_TEXT ? text.substring(0, LONGEST_TEXT) : text);
    out.append(']');
  }

  private void attribute(AttributeReference a, DataType read) {
    Object name = names.get(Long.valueOf(a.exprId().id()));
    if (name == null) {
      unknown(a);
      return;
    }
    out.append("[\"col\",");
    Json.string(out, (String) name);
    out.append(',');
    String declared = a.metadata().contains(CHAR_TYPE) ? a.metadata().getString(CHAR_TYPE) : "";
    // A VARCHAR is a string; only CHAR is read otherwise than it was written.
    boolean isPadded = declared.replaceAll("varchar\\(\\d+\\)", "").contains("char(");
    Json.string(out, isPadded ? declared : Types.text(read));
    out.append(']');
  }

  private void constants(Expression e) {
    int start = out.length();
    try {
      if (e instanceof InSet) {
        inSet((InSet) e);
        return;
      }
      out.append("[\"lit\",");
      Values.write(out, ((Literal) e).value(), e.dataType());
      out.append(',');
      Json.string(out, Types.text(e.dataType()));
      out.append(']');
    } catch (Unwritable part) {
      out.setLength(start);
      unknown(e);
    }
  }

  private void inSet(InSet e) {
    DataType type = e.child().dataType();
    List texts = new ArrayList();
    Iterator values = Scala.iterator(e.hset());
    while (values.hasNext()) {
      StringBuilder text = new StringBuilder();
      Values.write(text, values.next(), type);
      texts.add(text.toString());
    }
    // A set has no order of its own, and equal sets must have equal texts.
    Object[] sorted = texts.toArray();
    Arrays.sort(sorted);
    out.append("[\"InSet\",{\"values\":[");
    for (int i = 0; i < sorted.length; i++) {
      out.append(i == 0 ? "" : ",").append((String) sorted[i]);
    }
    out.append("],\"type\":");
    Json.string(out, Types.text(type));
    States.write(out, e);
    out.append('}');
    children(e);
  }

  /** Conditions made by programs nest hundreds deep on one side; flat, they cost no stack. */
  private void chain(Expression e) {
    out.append('[');
    Json.string(out, e.getClass().getSimpleName());
    out.append(",{}");
    ArrayDeque waiting = new ArrayDeque();
    waiting.push(e);
    while (!waiting.isEmpty()) {
      Expression part = (Expression) waiting.pop();
      if (part.getClass() == e.getClass()) {
        waiting.push(part.children().apply(1));
        waiting.push(part.children().head());
      } else {
        out.append(',');
        write(part);
      }
    }
    out.append(']');
  }

  /** With the type of what is asked for NULL, which no literal beside it tells. */
  private void ofNull(Expression e) {
    out.append('[');
    Json.string(out, e.getClass().getSimpleName());
    out.append(",{\"type\":");
    Json.string(out, Types.text(((Expression) e.children().head()).dataType()));
    out.append('}');
    children(e);
  }

  private void children(Expression e) {
    children(e, e.dataType());
  }

  private void children(Expression e, DataType read) {
    Iterator children = Scala.iterator(e.children());
    for (int i = 0; children.hasNext(); i++) {
      Expression child = (Expression) children.next();
      out.append(',');
      write(child, i == 0 ? Accesses.readOfChild(e, child, read) : child.dataType());
    }
    out.append(']');
  }

  private void general(Expression e, DataType read) {
    int start = out.length();
    try {
      parameters(e);
    } catch (Unwritable part) {
      out.setLength(start);
      unknown(e);
      return;
    }
    children(e, read);
  }

  private void parameters(Expression e) {
    Product product = (Product) e;
    List children = Scala.list(e.children());
    out.append('[');
    Json.string(out, e.getClass().getSimpleName());
    out.append(",{");
    boolean hasShapes = groupsOfChildren(product, children) > 1;
    String separator = "";
    for (int i = 0; i < product.productArity(); i++) {
      Object element = product.productElement(i);
      boolean isGroup = Arguments.isMadeOf(element, children);
      if (isChild(element, children) || (isGroup && !hasShapes)) {
        continue;
      }
      out.append(separator);
      separator = ",";
      Json.string(out, product.productElementName(i));
      out.append(':');
      if (isGroup) {
        Arguments.shape(out, element, children);
      } else {
        Arguments.write(out, element);
      }
    }
    States.write(out, e);
    out.append('}');
  }

  private static boolean isChild(Object element, List children) {
    return element instanceof Expression && Arguments.position(element, children) >= 0;
  }

  /** With more than one group, such as CASE's branches and ELSE, the flat list is ambiguous. */
  private static int groupsOfChildren(Product product, List children) {
    int groups = 0;
    for (int i = 0; i < product.productArity(); i++) {
      groups += Arguments.isMadeOf(product.productElement(i), children) ? 1 : 0;
    }
    return groups;
  }
}
