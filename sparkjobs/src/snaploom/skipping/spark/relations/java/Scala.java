package snaploom.skipping;

import java.lang.reflect.Method;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import scala.Product;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Between Scala's collections and case classes and Java's. */
final class Scala {
  private Scala() {}

  static List list(Seq values) {
    return CollectionConverters.asJava((scala.collection.Seq) values);
  }

  static Iterator iterator(scala.collection.Iterable values) {
    return CollectionConverters.asJava(values.iterator());
  }

  static Iterator iterator(scala.collection.Iterator values) {
    return CollectionConverters.asJava(values);
  }

  static Map map(scala.collection.Map values) {
    return CollectionConverters.asJava(values);
  }

  static Seq seq(List values) {
    return CollectionConverters.asScala(values).toSeq();
  }

  /**
   * A copy of a case class with one field changed. By name and through reflection, because Spark
   * adds parameters to its plans with almost every release.
   */
  static Object copyWith(Product original, String field, Object value) throws Exception {
    Object[] arguments = new Object[original.productArity()];
    boolean isKnown = false;
    for (int i = 0; i < arguments.length; i++) {
      boolean isField = original.productElementName(i).equals(field);
      arguments[i] = isField ? value : original.productElement(i);
      isKnown = isKnown || isField;
    }
    Method[] methods = original.getClass().getMethods();
    for (int i = 0; i < methods.length && isKnown; i++) {
      if (methods[i].getName().equals("copy")
          && methods[i].getParameterCount() == arguments.length) {
        return methods[i].invoke(original, arguments);
      }
    }
    throw new NoSuchFieldException(original.getClass().getName() + " has no " + field);
  }
}
