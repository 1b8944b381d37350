package snaploom.published;

import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Between Scala's collections and Java's. */
final class Scala {
  private Scala() {}

  static Iterator iterator(scala.collection.Iterable values) {
    return CollectionConverters.asJava(values.iterator());
  }

  static Seq seq(List values) {
    return CollectionConverters.asScala(values).toSeq();
  }

  static scala.collection.immutable.Map map(Map values) {
    return scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(values));
  }

  static scala.collection.immutable.Map emptyMap() {
    return map(new HashMap());
  }
}
