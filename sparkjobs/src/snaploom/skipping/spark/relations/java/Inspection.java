package snaploom.skipping;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/** Describes a frame for building and explaining, in the form in which queries are described. */
final class Inspection {
  private Inspection() {}

  /** Relations of files in an analysed plan, those in subqueries too. */
  static List relations(LogicalPlan plan) {
    List found = new ArrayList();
    leaves(plan, found);
    Iterator subqueries = Scala.iterator(plan.subqueriesAll());
    while (subqueries.hasNext()) {
      leaves((LogicalPlan) subqueries.next(), found);
    }
    return found;
  }

  private static void leaves(LogicalPlan plan, List found) {
    Iterator leaves = Scala.iterator(plan.collectLeaves());
    while (leaves.hasNext()) {
      FileRelation relation = FileRelation.of((LogicalPlan) leaves.next());
      if (relation != null) {
        found.add(relation);
      }
    }
  }

  static String header(FileRelation relation, Dataset frame, String[] names) {
    StringBuilder out = new StringBuilder();
    open(out, relation, frame, names);
    return out.append('}').toString();
  }

  private static void open(
      StringBuilder out, FileRelation relation, Dataset frame, String[] names) {
    SQLConf conf = frame.queryExecution().sparkSession().sessionState().conf();
    relation.describe(out, new Settings(conf, names));
    out.append(",\"mode\":\"list\",\"filters\":[]");
  }

  static String listing(Dataset frame, String[] names) {
    FileRelation relation = single(frame);
    Seq none = (Seq) Nil$.MODULE$;
    Listing listing = new Listing(relation.index.listFiles(none, none));
    StringBuilder out = new StringBuilder();
    open(out, relation, frame, names);
    listing.writePartitions(out, relation.partitionSchema);
    listing.writeWithTags(out);
    return out.toString();
  }

  private static FileRelation single(Dataset frame) {
    List relations = relations(frame.queryExecution().analyzed());
    if (relations.size() != 1) {
      throw new IllegalArgumentException("relations of files: " + relations.size());
    }
    return (FileRelation) relations.get(0);
  }

  /** The columns of `relation.select(...)`, as they stand when a query's filters are decided on. */
  static String serialise(Dataset frame) {
    FileRelation relation = single(frame);
    LogicalPlan analyzed = frame.queryExecution().analyzed();
    // Not the frame's own optimised plan: there a cached relation is no relation any more.
    LogicalPlan plan =
        (LogicalPlan)
            frame.queryExecution().sparkSession().sessionState().optimizer().execute(
                ((LogicalPlan) analyzed.clone()));
    Iterator columns;
    if (plan instanceof Project) {
      columns = Scala.iterator(((Project) plan).projectList());
    } else if (plan.children().isEmpty()) {
      columns = Scala.iterator(plan.output());
    } else {
      throw new IllegalArgumentException("not a projection: " + plan.nodeName());
    }
    StringBuilder out = new StringBuilder("[");
    for (int i = 0; columns.hasNext(); i++) {
      Expression column = (Expression) columns.next();
      out.append(i == 0 ? "" : ",").append("{\"expression\":");
      new Expressions(out, relation.names).write(column);
      out.append(",\"type\":");
      Json.string(out, column.dataType().catalogString());
      out.append('}');
    }
    return out.append(']').toString();
  }
}
