package snaploom.skipping;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.CatalogStatistics;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.CatalogFileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.FileScan;
import org.apache.spark.sql.internal.SQLConf;
import scala.Function1;
import scala.Option;
import scala.Product;
import scala.Some;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.math.BigInt;
import scala.runtime.AbstractPartialFunction;

/** Gives filtered relations of files an index that skips; leaves everything else as it is. */
final class Swap extends AbstractPartialFunction {
  private final Installation installation;

  /** By relation, conditions to which there was no answer. */
  private final Map unanswered = new IdentityHashMap();

  Swap(Installation installation) {
    this.installation = installation;
  }

  public boolean isDefinedAt(Object node) {
    return node instanceof Filter
        || node instanceof Project
        || node instanceof Join
        || node instanceof DataSourceV2ScanRelation;
  }

  public Object applyOrElse(Object node, Function1 otherwise) {
    if (isDefinedAt(node)) {
      try {
        LogicalPlan swapped = swapped((LogicalPlan) node);
        if (swapped != null) {
          return swapped;
        }
      } catch (Throwable failure) {
        Failures.add(failure);
      }
    }
    return otherwise.apply(node);
  }

  private LogicalPlan swapped(LogicalPlan node) throws Exception {
    if (node instanceof DataSourceV2ScanRelation) {
      return scan((DataSourceV2ScanRelation) node, new ArrayList());
    }
    return node instanceof Join ? joined((Join) node) : filtered(node);
  }

  /** Projections and filters over a relation, taken apart as Spark does when it plans them. */
  private LogicalPlan filtered(LogicalPlan node) throws Exception {
    Scan scan = Scan.of(node);
    // A scan of the second generation has its filters, and is met as a node of its own.
    boolean isFirst = scan != null && scan.leaf instanceof LogicalRelation;
    return isFirst ? swapped(node, scan, new ArrayList()) : null;
  }

  private LogicalPlan joined(Join join) throws Exception {
    LogicalPlan left = joined(join, join.left(), join.right(), JoinKeys.dropsLeft(join));
    LogicalPlan right =
        left == null
            ? joined(join, join.right(), join.left(), JoinKeys.dropsRight(join))
            : null;
    if (left == null && right == null) {
      return null;
    }
    return (LogicalPlan)
        Scala.copyWith(join, left == null ? "right" : "left", left == null ? right : left);
  }

  private LogicalPlan joined(Join join, LogicalPlan read, LogicalPlan other, boolean drops)
      throws Exception {
    Scan scan = drops && JoinKeys.isEnabled() ? Scan.of(read) : null;
    List keys = scan == null ? null : JoinKeys.find(join, scan, other);
    if (keys == null || keys.isEmpty()) {
      return null;
    }
    if (scan.leaf instanceof LogicalRelation) {
      return swapped(read, scan, keys);
    }
    LogicalPlan swapped = scan((DataSourceV2ScanRelation) scan.leaf, keys);
    return swapped == null
        ? null
        : (LogicalPlan) read.transformUp(new Replacement(scan.leaf, swapped));
  }

  private LogicalPlan swapped(LogicalPlan node, Scan scan, List joinKeys) throws Exception {
    LogicalRelation leaf = (LogicalRelation) scan.leaf;
    FileRelation relation = scan.relation;
    HadoopFsRelation files = (HadoopFsRelation) leaf.relation();
    Filters filters = new Filters(scan.conjuncts, leaf);
    if ((filters.isEmpty() && joinKeys.isEmpty())
        || wasAsked(scan)
        || !installation.concerns(relation)) {
      return null;
    }
    List further = new ArrayList(joinKeys);
    further.addAll(filters.ofBoth);
    Skipper skipper =
        new Skipper(pinned(relation), installation, files.sparkSession(), further);
    Decision decision = skipper.estimate(filters.ofPartitions, filters.ofData);
    if (!decision.isInformed) {
      remember(scan);
      return null;
    }
    HadoopFsRelation skipping =
        new SkippingRelation(files, new SkippingFileIndex(skipper), decision);
    LogicalPlan swapped = (LogicalPlan) Scala.copyWith(leaf, "relation", skipping);
    return (LogicalPlan)
        node.transformUp(new Replacement(leaf, sized(swapped, decision)));
  }

  /** A plan is met again from below, with fewer conditions; then there is no answer either. */
  private boolean wasAsked(Scan scan) {
    List conditions = (List) unanswered.get(scan.leaf);
    for (int i = 0; conditions != null && i < conditions.size(); i++) {
      if (((Set) conditions.get(i)).containsAll(scan.conjuncts)) {
        return true;
      }
    }
    return false;
  }

  private void remember(Scan scan) {
    if (!unanswered.containsKey(scan.leaf)) {
      unanswered.put(scan.leaf, new ArrayList());
    }
    ((List) unanswered.get(scan.leaf)).add(new HashSet(scan.conjuncts));
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

  /** Where the catalog knows sizes, Spark does not ask the files for theirs: scale them. */
  private static LogicalPlan sized(LogicalPlan swapped, Decision decision) throws Exception {
    Option table = ((LogicalRelation) swapped).catalogTable();
    if (table.isEmpty() || ((CatalogTable) table.get()).stats().isEmpty()) {
      return swapped;
    }
    CatalogStatistics stats = (CatalogStatistics) ((CatalogTable) table.get()).stats().get();
    if (SQLConf.get().cboEnabled() && !stats.colStats().isEmpty()) {
      // They already say how much a filter leaves; what it drops must not count twice.
      return swapped;
    }
    Object pruned = Scala.copyWith(stats, "sizeInBytes", decision.scale(stats.sizeInBytes()));
    if (stats.rowCount().isDefined()) {
      BigInt rows = decision.scale((BigInt) stats.rowCount().get());
      pruned = Scala.copyWith((Product) pruned, "rowCount", new Some(rows));
    }
    Object described = Scala.copyWith((Product) table.get(), "stats", new Some(pruned));
    return (LogicalPlan)
        Scala.copyWith((LogicalRelation) swapped, "catalogTable", new Some(described));
  }

  private LogicalPlan scan(DataSourceV2ScanRelation node, List joinKeys) throws Exception {
    FileRelation relation = FileRelation.of(node);
    if (relation == null || !(node.scan() instanceof Product)) {
      // Or it is guarded: a proxy, which was swapped before.
      return null;
    }
    FileScan files = (FileScan) node.scan();
    if (hasAggregate((Product) files)) {
      return null;
    }
    boolean hasFilters = !files.partitionFilters().isEmpty() || !files.dataFilters().isEmpty();
    if ((!hasFilters && joinKeys.isEmpty())
        || !installation.concerns(relation)) {
      return null;
    }
    SparkSession session = files.sparkSession();
    Skipper skipper = new Skipper(relation, installation, session, joinKeys);
    Decision decision = skipper.estimate(files.partitionFilters(), files.dataFilters());
    if (!decision.isInformed) {
      return null;
    }
    Object index = new SkippingFileIndexV2(session, skipper);
    FileScan skipping = (FileScan) Scala.copyWith((Product) files, "fileIndex", index);
    Product swapped = (Product) Scala.copyWith(node, "scan", GuardedFiles.of(skipping, files));
    return (LogicalPlan)
        Scala.copyWith(swapped, "relation", named((DataSourceV2Relation) node.relation(), decision));
  }

  /** A scan of this kind says of itself only its table's name, so that tells what is read. */
  private static Object named(DataSourceV2Relation relation, Decision decision) throws Exception {
    String name = relation.table().name() + " " + decision.summary();
    return Scala.copyWith(
        relation, "table", Scala.copyWith((Product) relation.table(), "name", name));
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
