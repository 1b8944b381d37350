package snaploom.skipping;

import java.time.ZoneId;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TimeZone;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.Product;
import scala.collection.Iterable;

/**
 * Writes constructor parameters of expressions that are not children. What has no text of its own
 * is `Unwritable`.
 */
final class Arguments {
  private Arguments() {}

  static void write(StringBuilder out, Object value) {
    if (value == null) {
      out.append("null");
    } else if (value instanceof Option) {
      write(out, ((Option) value).isDefined() ? ((Option) value).get() : null);
    } else if (value instanceof String || value instanceof Character) {
      Json.string(out, value.toString());
    } else if (value instanceof UTF8String) {
      Json.utf8(out, ((UTF8String) value).getBytes());
    } else if (value instanceof Float || value instanceof Double) {
      Json.string(out, value.toString());
    } else if (value instanceof Boolean
        || value instanceof Byte
        || value instanceof Short
        || value instanceof Integer
        || value instanceof Long) {
      out.append(value.toString());
    } else if (value instanceof DataType) {
      Json.string(out, Types.text((DataType) value));
    } else if (value instanceof TimeZone) {
      Json.string(out, ((TimeZone) value).getID());
    } else if (value instanceof ZoneId) {
      Json.string(out, ((ZoneId) value).getId());
    } else if (value instanceof Class && States.isOfSpark((Class) value)) {
      Json.string(out, ((Class) value).getName());
    } else if (value instanceof Enum) {
      Json.string(out, ((Enum) value).name());
    } else if (value instanceof scala.Enumeration.Value) {
      Json.string(out, value.toString());
    } else if (value instanceof Expression) {
      throw new Unwritable();
    } else if (value instanceof scala.collection.Map) {
      map(out, Scala.map((scala.collection.Map) value));
    } else if (value instanceof scala.collection.Seq) {
      sequence(out, Scala.iterator((Iterable) value));
    } else if (isModule(value)) {
      Json.string(out, value.getClass().getName());
    } else if (value instanceof Product && States.isWhole((Product) value)) {
      product(out, (Product) value);
    } else {
      throw new Unwritable();
    }
  }

  /** A Scala `object`: there is one instance of its class, so the name says it all. */
  private static boolean isModule(Object value) {
    return value.getClass().getName().endsWith("$") && States.isOfSpark(value.getClass());
  }

  /** By the texts of the keys, since a map has no order of its own. */
  private static void map(StringBuilder out, Map values) {
    TreeMap texts = new TreeMap();
    for (Object item : values.entrySet()) {
      StringBuilder key = new StringBuilder();
      write(key, ((Map.Entry) item).getKey());
      StringBuilder value = new StringBuilder();
      write(value, ((Map.Entry) item).getValue());
      texts.put(key.toString(), value.toString());
    }
    out.append("{\"map\":[");
    String separator = "";
    for (Object item : texts.entrySet()) {
      Map.Entry entry = (Map.Entry) item;
      out.append(separator).append('[').append((String) entry.getKey()).append(',');
      out.append((String) entry.getValue()).append(']');
      separator = ",";
    }
    out.append("]}");
  }

  private static void sequence(StringBuilder out, Iterator values) {
    out.append('[');
    boolean isFirst = true;
    while (values.hasNext()) {
      out.append(isFirst ? "" : ",");
      isFirst = false;
      write(out, values.next());
    }
    out.append(']');
  }

  private static void product(StringBuilder out, Product value) {
    out.append("{\"is\":");
    Json.string(out, value.getClass().getName());
    for (int i = 0; i < value.productArity(); i++) {
      out.append(',');
      Json.string(out, value.productElementName(i));
      out.append(':');
      write(out, value.productElement(i));
    }
    out.append('}');
  }

  static int position(Object value, List children) {
    for (int i = 0; i < children.size(); i++) {
      if (children.get(i) == value) {
        return i;
      }
    }
    return -1;
  }

  /** Is it an option, sequence or tuple of nothing but children, and of at least one? */
  static boolean isMadeOf(Object value, List children) {
    if (value instanceof Expression || !isGroup(value)) {
      return false;
    }
    Iterator parts = parts(value);
    if (!parts.hasNext()) {
      return false;
    }
    while (parts.hasNext()) {
      Object part = parts.next();
      if (position(part, children) < 0 && !isMadeOf(part, children)) {
        return false;
      }
    }
    return true;
  }

  /** The group with positions in the list of children in the place of the children. */
  static void shape(StringBuilder out, Object value, List children) {
    if (value instanceof Expression) {
      out.append(position(value, children));
      return;
    }
    out.append('[');
    Iterator parts = parts(value);
    boolean isFirst = true;
    while (parts.hasNext()) {
      out.append(isFirst ? "" : ",");
      isFirst = false;
      shape(out, parts.next(), children);
    }
    out.append(']');
  }

  private static boolean isGroup(Object value) {
    return value instanceof scala.collection.Seq
        || value instanceof Option
        || value instanceof scala.Tuple2;
  }

  private static Iterator parts(Object value) {
    if (value instanceof scala.collection.Seq) {
      return Scala.iterator((Iterable) value);
    }
    return Scala.iterator(((Product) value).productIterator());
  }
}
