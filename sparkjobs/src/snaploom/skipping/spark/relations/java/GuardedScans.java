package snaploom.skipping;

import java.lang.reflect.Constructor;
import java.util.Iterator;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.FileSourceStrategy$;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.codehaus.janino.SimpleCompiler;
import scala.Product;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.runtime.BoxedUnit;

/** Plans scans of swapped relations as Spark does, with a guard. */
final class GuardedScans extends SparkStrategy {
  /**
   * By this Comet leaves a scan to Spark. Its own lists files once and for all, without a guard,
   * and so reads every file.
   */
  private static final TreeNodeTag SCANNED_BY_SPARK = new TreeNodeTag("comet.skipCometScan");

  private static final Constructor SPARKS = FileSourceScanExec.class.getConstructors()[0];
  private static final Constructor OURS = compiled(SPARKS.getParameterTypes());

  public Seq apply(LogicalPlan plan) {
    LogicalPlan leaf = plan;
    while (leaf instanceof Project || leaf instanceof Filter) {
      leaf = (LogicalPlan) leaf.children().head();
    }
    if (!(leaf instanceof LogicalRelation)
        || !(((LogicalRelation) leaf).relation() instanceof SkippingRelation)) {
      return (Seq) Nil$.MODULE$;
    }
    Seq planned = FileSourceStrategy$.MODULE$.apply(plan);
    if (planned.isEmpty()) {
      return planned;
    }
    SparkPlan scan = (SparkPlan) planned.head();
    Iterator leaves = Scala.iterator(scan.collectLeaves());
    while (leaves.hasNext()) {
      Object found = leaves.next();
      if (found instanceof FileSourceScanExec) {
        if (((SkippingRelation) ((LogicalRelation) leaf).relation()).isForSpark) {
          ((TreeNode) found).setTagValue(SCANNED_BY_SPARK, BoxedUnit.UNIT);
        }
        scan =
            (SparkPlan)
                scan.transformUp(new Replacement(found, made(OURS, (Product) found)));
      }
    }
    return Scala.seq(java.util.Collections.singletonList(scan));
  }

  /** The same scan, of Spark's own class, that lists every file. */
  static FileSourceScanExec withoutSkipping(FileSourceScanExec scan) throws Exception {
    HadoopFsRelation skipping = scan.relation();
    HadoopFsRelation whole =
        new HadoopFsRelation(
            ((SkippingFileIndex) skipping.location()).base,
            skipping.partitionSchema(),
            skipping.dataSchema(),
            skipping.bucketSpec(),
            skipping.fileFormat(),
            skipping.options(),
            skipping.sparkSession());
    return plain((FileSourceScanExec) Scala.copyWith(scan, "relation", whole));
  }

  /** The same scan, of Spark's own class. */
  static FileSourceScanExec plain(FileSourceScanExec scan) {
    return (FileSourceScanExec) made(SPARKS, scan);
  }

  private static Object made(Constructor constructor, Product original) {
    Object[] arguments = new Object[original.productArity()];
    for (int i = 0; i < arguments.length; i++) {
      arguments[i] = original.productElement(i);
    }
    try {
      return constructor.newInstance(arguments);
    } catch (ReflectiveOperationException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  /**
   * The constructor of a scan that is guarded. Spark adds parameters to its own with almost every
   * release, so the class is written here. Executors have only Spark's, as which it is serialised.
   */
  private static Constructor compiled(Class[] types) {
    StringBuilder parameters = new StringBuilder();
    StringBuilder arguments = new StringBuilder();
    for (int i = 0; i < types.length; i++) {
      String separator = i == 0 ? "" : ", ";
      parameters.append(separator).append(types[i].getName()).append(" p").append(i);
      arguments.append(separator).append("p").append(i);
    }
    String source =
        "package snaploom.skipping.generated;"
            + " import org.apache.spark.sql.execution.FileSourceScanExec;"
            + " import snaploom.skipping.Guard;"
            + " public final class GuardedFileSourceScanExec extends FileSourceScanExec {"
            + " private final Guard guard = new Guard();"
            + (" public GuardedFileSourceScanExec(" + parameters + ") { super(" + arguments + "); }")
            + (" public FileSourceScanExec copy(" + parameters + ") {")
            + (" return new GuardedFileSourceScanExec(" + arguments + "); }")
            + " public org.apache.spark.sql.execution.ScanFileListing selectedPartitions() {"
            + " guard.begin();"
            + " try { return super.selectedPartitions(); } finally { guard.end(); } }"
            + " public org.apache.spark.rdd.RDD inputRDD() {"
            + " return guard.over(super.inputRDD(), this); }"
            // Nodes of plans are put in the place of others only if they are not equal.
            + " public boolean canEqual(Object other) { return other instanceof GuardedFileSourceScanExec; }"
            + " public boolean equals(Object other) { return canEqual(other) && super.equals(other); }"
            + " public int hashCode() { return super.hashCode(); }"
            + " public Object writeReplace() { return guard.plain(this); } }";
    try {
      SimpleCompiler compiler = new SimpleCompiler();
      compiler.setParentClassLoader(GuardedScans.class.getClassLoader());
      compiler.cook(source);
      return compiler
          .getClassLoader()
          .loadClass("snaploom.skipping.generated.GuardedFileSourceScanExec")
          .getConstructors()[0];
    } catch (Exception unfit) {
      throw new IllegalStateException(unfit);
    }
  }
}
