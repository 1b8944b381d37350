package snaploom.skipping;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Offset;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import scala.Function1;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/**
 * Rows that stand in a plan itself: VALUES, a SELECT without FROM, and what is computed from them.
 *
 * <p>No operator that is known here gives more rows than those below it have, so that planning does
 * no more work than the query itself, and none reads anything. What these operators leave out
 * (limits, partners of a semi join) may be among the rows: more keys drop fewer files.
 */
final class LiteralRows {
  private final List rows;
  private final Seq output;
  private final AttributeSet columns;

  private LiteralRows(List rows, LogicalPlan plan) {
    this.rows = rows;
    this.output = plan.output();
    this.columns = plan.outputSet();
  }

  /** Null where the rows are not known, or more than `most` would have to be computed. */
  static LiteralRows of(LogicalPlan plan, int most) {
    try {
      List rows = plan.isStreaming() ? null : rows(plan, most);
      return rows == null ? null : new LiteralRows(rows, plan);
    } catch (Exception failure) {
      // Whether the query fails is its own matter: a row that fails may never be reached.
      return null;
    }
  }

  boolean has(Expression expression) {
    return !expression.references().isEmpty() && expression.references().subsetOf(columns);
  }

  /** Values of an expression for the rows, without NULL; null for none, too many, or a failure. */
  Set values(Expression expression, int most) {
    Set values = new HashSet();
    try {
      Expression bound = bound(expression, output);
      for (Object row : rows) {
        Object value = bound.eval((InternalRow) row);
        if (value != null) {
          values.add(value);
        }
        if (values.size() > most) {
          return null;
        }
      }
    } catch (Exception failure) {
      return null;
    }
    return values.isEmpty() ? null : values;
  }

  private static List rows(LogicalPlan plan, int most) {
    if (plan instanceof LocalRelation) {
      return Scala.list(((LocalRelation) plan).data());
    }
    if (plan instanceof OneRowRelation) {
      return Collections.singletonList(new GenericInternalRow(new Object[0]));
    }
    if (plan instanceof Union) {
      return united((Union) plan, most);
    }
    LogicalPlan child = isKnown(plan) ? (LogicalPlan) plan.children().head() : null;
    List below = child == null ? null : rows(child, most);
    if (below == null || isSelection(plan)) {
      return below;
    }
    if (below.size() > most) {
      return null;
    }
    if (plan instanceof Filter) {
      return filtered(below, ((Filter) plan).condition(), child.output());
    }
    Seq columns =
        plan instanceof Project
            ? ((Project) plan).projectList()
            : ((Aggregate) plan).aggregateExpressions();
    return computed(below, Scala.list(columns), child.output());
  }

  private static boolean isKnown(LogicalPlan plan) {
    return isSelection(plan)
        || plan instanceof Filter
        || plan instanceof Project
        || (plan instanceof Aggregate && isGrouping((Aggregate) plan));
  }

  /** Does it give rows of its first child, as they are? */
  private static boolean isSelection(LogicalPlan plan) {
    return plan instanceof Sort
        || plan instanceof GlobalLimit
        || plan instanceof LocalLimit
        || plan instanceof Offset
        || (plan instanceof Join
            && (((Join) plan).joinType() == LeftSemi$.MODULE$
                || ((Join) plan).joinType() == LeftAnti$.MODULE$));
  }

  /**
   * Groups of which every row gives the same, as DISTINCT has them. Without grouping there is a row
   * even of no rows; and rows of one group may differ where equal values have several forms. An
   * aggregate function cannot be evaluated for a row, and ends it all.
   */
  private static boolean isGrouping(Aggregate plan) {
    Iterator grouping = Scala.iterator(plan.groupingExpressions());
    boolean isExact = grouping.hasNext();
    while (grouping.hasNext()) {
      isExact = isExact && JoinKeys.isExact(((Expression) grouping.next()).dataType());
    }
    return isExact;
  }

  private static List united(Union plan, int most) {
    List all = new ArrayList();
    Iterator children = Scala.iterator(plan.children());
    while (children.hasNext()) {
      List some = rows((LogicalPlan) children.next(), most);
      if (some == null || all.size() + some.size() > most) {
        return null;
      }
      all.addAll(some);
    }
    return all;
  }

  private static List filtered(List rows, Expression condition, Seq output) {
    Expression bound = bound(condition, output);
    List found = new ArrayList();
    for (Object row : rows) {
      if (Boolean.TRUE.equals(bound.eval((InternalRow) row))) {
        found.add(row);
      }
    }
    return found;
  }

  private static List computed(List rows, List columns, Seq output) {
    Expression[] bound = new Expression[columns.size()];
    for (int i = 0; i < bound.length; i++) {
      Object column = columns.get(i);
      bound[i] =
          bound(column instanceof Alias ? ((Alias) column).child() : (Expression) column, output);
    }
    List found = new ArrayList();
    for (Object row : rows) {
      Object[] values = new Object[bound.length];
      for (int i = 0; i < bound.length; i++) {
        values[i] = bound[i].eval((InternalRow) row);
      }
      found.add(new GenericInternalRow(values));
    }
    return found;
  }

  private static Expression bound(Expression expression, Seq output) {
    if (!expression.deterministic()) {
      throw new IllegalArgumentException(expression.sql());
    }
    return (Expression) expression.transform(new Binding(output));
  }
}

/** Puts positions in rows in the place of columns, so that an expression can be evaluated. */
final class Binding extends AbstractPartialFunction {
  private final List output;

  Binding(Seq output) {
    this.output = Scala.list(output);
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
        return new BoundReference(i, column.dataType(), true);
      }
    }
    throw new IllegalStateException(column.sql());
  }
}
