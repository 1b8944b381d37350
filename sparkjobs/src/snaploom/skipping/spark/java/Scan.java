package snaploom.skipping;

import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.planning.ScanOperation$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.Option;
import scala.Tuple4;
import scala.collection.immutable.Seq;

/** Projections and filters over a relation of files, as Spark takes them apart for planning. */
final class Scan {
  final LogicalRelation leaf;
  final FileRelation relation;

  /** Conditions that every row has to meet, in terms of the relation. */
  final List conjuncts;

  private final Seq projections;

  private Scan(LogicalRelation leaf, FileRelation relation, List conjuncts, Seq projections) {
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
    if (!(parts._4() instanceof LogicalRelation)) {
      return null;
    }
    LogicalRelation leaf = (LogicalRelation) parts._4();
    FileRelation relation = FileRelation.of(leaf);
    if (relation == null || leaf.relation().getClass() != HadoopFsRelation.class) {
      return null;
    }
    return new Scan(leaf, relation, Scala.list((Seq) parts._3()), (Seq) parts._1());
  }

  /** The relation's own column that an attribute of the plan's output is, or null. */
  AttributeReference column(AttributeReference output) {
    Iterator all = Scala.iterator(projections);
    while (all.hasNext()) {
      Object projection = all.next();
      if (((NamedExpression) projection).exprId().equals(output.exprId())) {
        Object source = projection instanceof Alias ? ((Alias) projection).child() : projection;
        return source instanceof AttributeReference && isOurs((Expression) source)
            ? (AttributeReference) source
            : null;
      }
    }
    return null;
  }

  private boolean isOurs(Expression column) {
    return relation.names.containsKey(Long.valueOf(((AttributeReference) column).exprId().id()));
  }
}
