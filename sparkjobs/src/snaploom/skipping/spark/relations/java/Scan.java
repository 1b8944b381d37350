package snaploom.skipping;

import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.planning.ScanOperation$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.Function1;
import scala.Option;
import scala.Tuple4;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/** Projections and filters over a relation of files, as Spark takes them apart for planning. */
final class Scan {
  final LogicalPlan leaf;
  final FileRelation relation;

  /** Conditions that every row has to meet, in terms of the relation. */
  final List conjuncts;

  private final Seq projections;

  private Scan(LogicalPlan leaf, FileRelation relation, List conjuncts, Seq projections) {
    this.leaf = leaf;
    this.relation = relation;
    this.conjuncts = conjuncts;
    this.projections = projections;
  }

  /** Null if the plan is something else, or its relation was swapped already. */
  static Scan of(LogicalPlan plan) {
    Option operation = ScanOperation$.MODULE$.unapply(plan);
    if (operation.isEmpty()) {
      return null;
    }
    Tuple4 parts = (Tuple4) operation.get();
    LogicalPlan leaf = (LogicalPlan) parts._4();
    if (!isRead(leaf)) {
      return null;
    }
    FileRelation relation = FileRelation.of(leaf);
    if (relation == null) {
      return null;
    }
    return new Scan(leaf, relation, Scala.list((Seq) parts._3()), (Seq) parts._1());
  }

  private static boolean isRead(LogicalPlan leaf) {
    return leaf instanceof DataSourceV2ScanRelation
        || (leaf instanceof LogicalRelation
            && ((LogicalRelation) leaf).relation().getClass() == HadoopFsRelation.class);
  }

  /** An expression over the plan's output in terms of the relation; null if it is none. */
  Expression read(Expression expression) {
    Expression found = (Expression) expression.transform(new Reading(projections));
    if (!found.deterministic() || found.references().isEmpty()) {
      return null;
    }
    Iterator columns = Scala.iterator(found.references().toSeq());
    while (columns.hasNext()) {
      if (!relation.names.containsKey(id((Attribute) columns.next()))) {
        return null;
      }
    }
    return found;
  }

  private static Long id(Attribute column) {
    return Long.valueOf(column.exprId().id());
  }
}

/** Puts what a projection computes in the place of its columns. */
final class Reading extends AbstractPartialFunction {
  private final Seq projections;

  Reading(Seq projections) {
    this.projections = projections;
  }

  public boolean isDefinedAt(Object node) {
    return node instanceof AttributeReference;
  }

  public Object applyOrElse(Object node, Function1 otherwise) {
    if (!isDefinedAt(node)) {
      return otherwise.apply(node);
    }
    Iterator all = Scala.iterator(projections);
    while (all.hasNext()) {
      Object each = all.next();
      if (((NamedExpression) each).exprId().equals(((AttributeReference) node).exprId())) {
        return each instanceof Alias ? ((Alias) each).child() : each;
      }
    }
    return node;
  }
}
