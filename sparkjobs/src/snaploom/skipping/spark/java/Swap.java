package snaploom.skipping;

import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.CatalogStatistics;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.planning.ScanOperation$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.CatalogFileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.FileScan;
import org.apache.spark.sql.internal.SQLConf;
import scala.Function1;
import scala.Option;
import scala.Product;
import scala.Some;
import scala.Tuple4;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.math.BigInt;
import scala.math.BigInt$;
import scala.runtime.AbstractPartialFunction;

/** Gives filtered relations of files an index that skips; leaves everything else as it is. */
final class Swap extends AbstractPartialFunction {
  private final Installation installation;

  Swap(Installation installation) {
    this.installation = installation;
  }

  public boolean isDefinedAt(Object node) {
    return node instanceof Filter
        || node instanceof Project
        || node instanceof DataSourceV2ScanRelation;
  }

  public Object applyOrElse(Object node, Function1 otherwise) {
    if (isDefinedAt(node)) {
      try {
        Object swapped =
            node instanceof DataSourceV2ScanRelation
                ? scan((DataSourceV2ScanRelation) node)
                : filtered((LogicalPlan) node);
        if (swapped != null) {
          return swapped;
        }
      } catch (Throwable failure) {
        Failures.add(failure);
      }
    }
    return otherwise.apply(node);
  }

  /** Projections and filters over a relation, taken apart as Spark does when it plans them. */
  private LogicalPlan filtered(LogicalPlan node) throws Exception {
    Option operation = ScanOperation$.MODULE$.unapply(node);
    if (operation.isEmpty()) {
      return null;
    }
    Tuple4 parts = (Tuple4) operation.get();
    List conjuncts = Scala.list((Seq) parts._3());
    if (conjuncts.isEmpty() || !(parts._4() instanceof LogicalRelation)) {
      return null;
    }
    LogicalRelation leaf = (LogicalRelation) parts._4();
    FileRelation relation = FileRelation.of(leaf);
    if (relation == null || leaf.relation().getClass() != HadoopFsRelation.class) {
      return null;
    }
    HadoopFsRelation files = (HadoopFsRelation) leaf.relation();
    Filters filters = new Filters(conjuncts, leaf);
    if (filters.isEmpty() || !installation.concerns(relation)) {
      return null;
    }
    Skipper skipper = new Skipper(pinned(relation), installation, files.sparkSession());
    Decision decision = skipper.estimate(filters.ofPartitions, filters.ofData);
    if (!decision.isInformed) {
      return null;
    }
    HadoopFsRelation skipping =
        new SkippingRelation(files, new SkippingFileIndex(skipper), decision);
    LogicalPlan swapped = (LogicalPlan) Scala.copyWith(leaf, "relation", skipping);
    return (LogicalPlan) node.transformUp(new Replacement(leaf, sized(swapped, decision)));
  }

  /**
   * A catalog's index asks the metastore with every listing; it is listed once and held, as Spark
   * does itself when a query has filters on partitions.
   */
  private static FileRelation pinned(FileRelation relation) {
    if (relation.index instanceof CatalogFileIndex) {
      CatalogFileIndex index = (CatalogFileIndex) relation.index;
      return relation.withIndex(index.filterPartitions((Seq) Nil$.MODULE$));
    }
    return relation;
  }

  /** Where the catalog knows a size, Spark does not ask the files for theirs. */
  private static LogicalPlan sized(LogicalPlan swapped, Decision decision) throws Exception {
    Option table = ((LogicalRelation) swapped).catalogTable();
    if (table.isEmpty() || ((CatalogTable) table.get()).stats().isEmpty()) {
      return swapped;
    }
    CatalogStatistics stats = (CatalogStatistics) ((CatalogTable) table.get()).stats().get();
    boolean isCostBased = SQLConf.get().cboEnabled() || SQLConf.get().planStatsEnabled();
    BigInt size = BigInt$.MODULE$.apply(decision.kept.bytes);
    if ((isCostBased && stats.rowCount().isDefined()) || !size.$less(stats.sizeInBytes())) {
      // Rows and histograms of the catalog already say how much a filter leaves.
      return swapped;
    }
    Object pruned = Scala.copyWith(stats, "sizeInBytes", size);
    Object described = Scala.copyWith((Product) table.get(), "stats", new Some(pruned));
    return (LogicalPlan)
        Scala.copyWith((LogicalRelation) swapped, "catalogTable", new Some(described));
  }

  private LogicalPlan scan(DataSourceV2ScanRelation node) throws Exception {
    FileRelation relation = FileRelation.of(node);
    if (relation == null || !(node.scan() instanceof Product)) {
      return null;
    }
    FileScan files = (FileScan) node.scan();
    if (files.fileIndex() instanceof SkippingFileIndexV2 || hasAggregate((Product) files)) {
      return null;
    }
    if ((files.partitionFilters().isEmpty() && files.dataFilters().isEmpty())
        || !installation.concerns(relation)) {
      return null;
    }
    SparkSession session = files.sparkSession();
    Skipper skipper = new Skipper(relation, installation, session);
    if (!skipper.estimate(files.partitionFilters(), files.dataFilters()).isInformed) {
      return null;
    }
    Object index = new SkippingFileIndexV2(session, skipper);
    return (LogicalPlan)
        Scala.copyWith(node, "scan", Scala.copyWith((Product) files, "fileIndex", index));
  }

  /** An aggregate that was pushed into the scan reads footers, and all of them. */
  private static boolean hasAggregate(Product scan) {
    for (int i = 0; i < scan.productArity(); i++) {
      if (scan.productElementName(i).equals("pushedAggregate")) {
        return ((Option) scan.productElement(i)).isDefined();
      }
    }
    return false;
  }
}
