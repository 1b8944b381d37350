package snaploom.skipping;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.KnownFloatingPointNormalized;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.LeftOuter$;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.RightOuter$;
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Keys of a join's other side, as a filter on the side that is read from files.
 *
 * <p>Only of rows that are in the plan itself (`LiteralRows`). Any other side would have to be run twice, once for
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
  static List find(Join join, Scan scan, LogicalPlan other) {
    List found = new ArrayList();
    int most = most();
    LiteralRows rows = join.condition().isDefined() ? LiteralRows.of(other, most) : null;
    if (rows != null) {
      split((Expression) join.condition().get(), scan, rows, most, found);
    }
    return found;
  }

  private static int most() {
    return Integer.parseInt(SQLConf.get().getConfString(LIMIT, String.valueOf(DEFAULT_LIMIT)));
  }

  private static void split(
      Expression condition, Scan scan, LiteralRows rows, int most, List found) {
    if (condition instanceof And) {
      split(((And) condition).left(), scan, rows, most, found);
      split(((And) condition).right(), scan, rows, most, found);
    } else if (condition instanceof EqualTo) {
      EqualTo equal = (EqualTo) condition;
      add(equal.left(), equal.right(), scan, rows, most, found);
      add(equal.right(), equal.left(), scan, rows, most, found);
    }
  }

  private static void add(
      Expression key, Expression partner, Scan scan, LiteralRows rows, int most, List found) {
    DataType type = key.dataType();
    if (!rows.has(partner)
        || !type.equals(partner.dataType())
        || !(isExact(type) || isFloating(type))) {
      return;
    }
    Expression read = scan.read(unwrapped(key));
    Set values = read == null ? null : rows.values(partner, most);
    if (values != null) {
      found.add(new InSet(read, CollectionConverters.asScala(values).toSet()));
    }
  }

  /** Types whose values are equal exactly when their internal forms are. */
  static boolean isExact(DataType type) {
    return type instanceof IntegralType
        || type instanceof DateType
        || type instanceof TimestampType
        || type instanceof TimestampNTZType
        || type instanceof DecimalType
        || type.catalogString().equals("string");
  }

  /** Equal values of these have several forms, of which whoever answers takes one (rule S4). */
  private static boolean isFloating(DataType type) {
    return type instanceof FloatType || type instanceof DoubleType;
  }

  /** Spark brings keys of floating-point numbers into one form, which equality does anyway. */
  private static Expression unwrapped(Expression key) {
    if (key instanceof KnownFloatingPointNormalized || key instanceof NormalizeNaNAndZero) {
      return unwrapped((Expression) key.children().head());
    }
    return key;
  }
}
