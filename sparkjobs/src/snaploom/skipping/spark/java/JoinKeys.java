package snaploom.skipping;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.LeftOuter$;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.RightOuter$;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import scala.Function1;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Keys of a join's other side, as a filter on the side that is read from files.
 *
 * <p>Only of rows that are in the plan itself. Any other side would have to be run twice, once for
 * its keys and once for the join, and nothing makes Spark see the same rows both times: files may
 * be rewritten in place between the runs, and a cache may be evicted and filled again from them.
 * Then rows would be lost that belong to the answer.
 *
 * <p>To run the other side once, while planning, and put its rows into the plan would lose none. But
 * a rule cannot tell EXPLAIN and frames that are only looked at from queries that run: all would
 * start jobs, and a frame that runs later would join rows of the time when it was planned.
 */
final class JoinKeys {
  private static final String ENABLED = "spark.snaploom.skipping.join.enabled";
  private static final String LIMIT = "spark.snaploom.skipping.join.keys";

  /** A list much longer says little about a file, and costs as much as reading it. */
  private static final int DEFAULT_LIMIT = 10000;

  private JoinKeys() {}

  static boolean isEnabled() {
    SQLConf conf = SQLConf.get();
    return !conf.contains(ENABLED) || !"false".equalsIgnoreCase(conf.getConfString(ENABLED));
  }

  /** Do rows of the left side that match nothing vanish? */
  static boolean dropsLeft(Join join) {
    return join.joinType() == Inner$.MODULE$
        || join.joinType() == LeftSemi$.MODULE$
        || join.joinType() == RightOuter$.MODULE$;
  }

  /** Do rows of the right side that match nothing vanish? */
  static boolean dropsRight(Join join) {
    return join.joinType() == Inner$.MODULE$ || join.joinType() == LeftOuter$.MODULE$;
  }

  /** Conditions on columns of the relation that every row with a partner meets. */
  static List find(Join join, Scan scan, LocalRelation other) {
    List found = new ArrayList();
    if (join.condition().isDefined()) {
      split((Expression) join.condition().get(), scan, other, found);
    }
    return found;
  }

  private static void split(Expression condition, Scan scan, LocalRelation other, List found) {
    if (condition instanceof And) {
      split(((And) condition).left(), scan, other, found);
      split(((And) condition).right(), scan, other, found);
    } else if (condition instanceof EqualTo) {
      EqualTo equal = (EqualTo) condition;
      add(equal.left(), equal.right(), scan, other, found);
      add(equal.right(), equal.left(), scan, other, found);
    }
  }

  private static void add(
      Expression key, Expression partner, Scan scan, LocalRelation other, List found) {
    if (!(key instanceof AttributeReference)
        || !partner.deterministic()
        || partner.references().isEmpty()
        || !partner.references().subsetOf(other.outputSet())) {
      return;
    }
    AttributeReference column = scan.column((AttributeReference) key);
    if (column == null
        || !isExact(column.dataType())
        || !column.dataType().equals(partner.dataType())) {
      return;
    }
    Set values = values(partner, other);
    if (values != null) {
      found.add(new InSet(column, CollectionConverters.asScala(values).toSet()));
    }
  }

  /** Types whose values are equal exactly when their internal forms are. */
  private static boolean isExact(DataType type) {
    return type instanceof IntegralType
        || type instanceof DateType
        || type instanceof TimestampType
        || type instanceof TimestampNTZType
        || type instanceof DecimalType
        || type.catalogString().equals("string");
  }

  /** Null if there are none or too many. */
  private static Set values(Expression partner, LocalRelation other) {
    String limit = SQLConf.get().getConfString(LIMIT, String.valueOf(DEFAULT_LIMIT));
    Expression bound = (Expression) partner.transform(new Binding(other));
    Set values = new HashSet();
    Iterator rows = Scala.iterator(other.data());
    while (rows.hasNext()) {
      Object value = bound.eval((InternalRow) rows.next());
      if (value != null) {
        values.add(value);
      }
      if (values.size() > Integer.parseInt(limit)) {
        return null;
      }
    }
    return values.isEmpty() ? null : values;
  }
}

/** Puts positions in rows in the place of a relation's columns, so that it can be evaluated. */
final class Binding extends AbstractPartialFunction {
  private final List output;

  Binding(LocalRelation relation) {
    this.output = Scala.list(relation.output());
  }

  public boolean isDefinedAt(Object node) {
    return node instanceof AttributeReference;
  }

  public Object applyOrElse(Object node, Function1 otherwise) {
    if (!isDefinedAt(node)) {
      return otherwise.apply(node);
    }
    AttributeReference column = (AttributeReference) node;
    for (int i = 0; i < output.size(); i++) {
      if (((AttributeReference) output.get(i)).exprId().equals(column.exprId())) {
        return new BoundReference(i, column.dataType(), column.nullable());
      }
    }
    throw new IllegalStateException(column.sql());
  }
}
