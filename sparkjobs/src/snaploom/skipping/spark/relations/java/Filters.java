package snaploom.skipping;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.AttributeSet$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.execution.datasources.FileSourceStrategy$;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;

/** A query's filters over a relation, split as Spark splits them when it plans the scan. */
final class Filters {
  final Seq ofPartitions;
  final Seq ofData;

  /** Conditions on both kinds of columns, of which Spark hands over only what follows for one. */
  final List ofBoth = new ArrayList();

  Filters(List conjuncts, LogicalRelation relation) {
    List partitionColumns = new ArrayList();
    List dataColumns = new ArrayList();
    StructType partitions = ((HadoopFsRelation) relation.relation()).partitionSchema();
    Iterator output = Scala.iterator(relation.output());
    while (output.hasNext()) {
      AttributeReference column = (AttributeReference) output.next();
      boolean isPartition = partitions.getFieldIndex(column.name()).isDefined();
      (isPartition ? partitionColumns : dataColumns).add(column);
    }
    AttributeSet ofPartitionsOnly = attributes(partitionColumns);
    AttributeSet ofDataOnly = attributes(dataColumns);
    List partitionFilters = new ArrayList();
    List dataFilters = new ArrayList();
    for (Object conjunct : conjuncts) {
      Expression filter = (Expression) conjunct;
      if (SubqueryExpression$.MODULE$.hasSubquery(filter) || !filter.deterministic()) {
        continue;
      }
      add(partitionFilters, filter, ofPartitionsOnly);
      if (filter.references().intersect(ofPartitionsOnly).isEmpty()) {
        dataFilters.add(filter);
      } else {
        add(dataFilters, filter, ofDataOnly);
        if (!filter.references().subsetOf(ofPartitionsOnly)) {
          ofBoth.add(filter);
        }
      }
    }
    ofPartitions = Scala.seq(partitionFilters);
    ofData = Scala.seq(dataFilters);
  }

  boolean isEmpty() {
    return ofPartitions.isEmpty() && ofData.isEmpty() && ofBoth.isEmpty();
  }

  private static AttributeSet attributes(List columns) {
    return AttributeSet$.MODULE$.apply((scala.collection.Iterable) Scala.seq(columns));
  }

  /** The part of a filter on some columns only; a filter without any implies nothing for them. */
  private static void add(List filters, Expression filter, AttributeSet columns) {
    if (columns.isEmpty()) {
      return;
    }
    Option part = FileSourceStrategy$.MODULE$.extractPredicatesWithinOutputSet(filter, columns);
    if (part.isDefined() && !((Expression) part.get()).references().isEmpty()) {
      filters.add(part.get());
    }
  }
}
