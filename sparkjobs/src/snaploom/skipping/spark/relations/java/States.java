package snaploom.skipping;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.catalyst.expressions.Expression;
import scala.Product;

/**
 * State of Spark's objects beside their constructor parameters.
 *
 * <p>Some expressions read settings while they are made, and keep them: `In` whether NULL is in an
 * empty list. Such a setting may have changed since, so what counts is what they keep.
 */
final class States {
  private static final String SPARK = "org.apache.spark.";
  private static final String CATALYST = "org.apache.spark.sql.catalyst.";

  /** Fields of each class (Class to List of Field) that hold such a state. */
  private static final ConcurrentHashMap FIELDS = new ConcurrentHashMap();

  private States() {}

  /** Code of others may mean something else tomorrow, also in a package of Spark's name. */
  static boolean isOfSpark(Class type) {
    String name = type.getName();
    if (Expression.class.isAssignableFrom(type)) {
      return name.startsWith(CATALYST)
          && Objects.equals(
              type.getProtectionDomain().getCodeSource(),
              Expression.class.getProtectionDomain().getCodeSource());
    }
    return name.startsWith(SPARK) || name.startsWith("scala.") || name.startsWith("java.lang.");
  }

  /** Whether a case class shows all that it was made with: further lists of parameters it does not. */
  static boolean isWhole(Product value) {
    Constructor[] constructors = value.getClass().getConstructors();
    for (int i = 0; i < constructors.length; i++) {
      if (constructors[i].getParameterCount() > value.productArity()) {
        return false;
      }
    }
    return isOfSpark(value.getClass());
  }

  /** Writes the state of an expression into its object of arguments, which has begun. */
  static void write(StringBuilder out, Expression e) {
    List fields = (List) FIELDS.get(e.getClass());
    if (fields == null) {
      fields = fields(e);
      FIELDS.put(e.getClass(), fields);
    }
    for (Object each : fields) {
      Field field = (Field) each;
      out.append(out.charAt(out.length() - 1) == '{' ? "" : ",");
      Json.string(out, field.getName());
      out.append(':');
      try {
        Arguments.write(out, field.get(e));
      } catch (IllegalAccessException closed) {
        throw new Unwritable();
      }
    }
  }

  private static List fields(Expression e) {
    Set parameters = new HashSet();
    for (int i = 0; i < ((Product) e).productArity(); i++) {
      parameters.add(((Product) e).productElementName(i));
    }
    List found = new ArrayList();
    Class type = e.getClass();
    while (type != null && type != Expression.class) {
      Field[] fields = type.getDeclaredFields();
      for (int i = 0; i < fields.length; i++) {
        if (isState(fields[i], type) && !parameters.contains(fields[i].getName())) {
          fields[i].setAccessible(true);
          found.add(fields[i]);
        }
      }
      type = type.getSuperclass();
    }
    return found;
  }

  /** A lazy value is none: it is computed with the settings of the query, which are compared. */
  private static boolean isState(Field field, Class owner) {
    String name = field.getName();
    Method[] methods = owner.getDeclaredMethods();
    boolean isSimple = field.getType().isPrimitive() || field.getType() == String.class;
    if (!isSimple || Modifier.isStatic(field.getModifiers()) || name.startsWith("bitmap$")) {
      return false;
    }
    for (int i = 0; i < methods.length; i++) {
      if (methods[i].getName().equals(name + "$lzycompute")) {
        return false;
      }
    }
    return true;
  }
}
