package snaploom.skipping;

import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;

/** The index of a relation's files, less those that cannot hold a row of the query. */
final class SkippingFileIndex implements FileIndex {
  final FileIndex base;
  final Skipper skipper;

  SkippingFileIndex(Skipper skipper) {
    this.base = skipper.base();
    this.skipper = skipper;
  }

  public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
    return skipper.list(partitionFilters, dataFilters);
  }

  public long sizeInBytes() {
    return skipper.sizeInBytes();
  }

  public Seq rootPaths() {
    return base.rootPaths();
  }

  public String[] inputFiles() {
    return base.inputFiles();
  }

  public void refresh() {
    base.refresh();
  }

  public StructType partitionSchema() {
    return base.partitionSchema();
  }

  public Option metadataOpsTimeNs() {
    return base.metadataOpsTimeNs();
  }

  /** Spark 4.3 asks for it; before, there is none to pass on. */
  public boolean isTimeTravel() {
    try {
      return Boolean.TRUE.equals(base.getClass().getMethod("isTimeTravel", new Class[0]).invoke(base, new Object[0]));
    } catch (ReflectiveOperationException none) {
      return false;
    }
  }

  /**
   * What is dropped follows from the filters, which Spark compares besides, and from the further
   * conditions; so equal exchanges are reused and others are not.
   */
  public boolean equals(Object other) {
    return other instanceof SkippingFileIndex
        && ((SkippingFileIndex) other).base.equals(base)
        && ((SkippingFileIndex) other).skipper.further.equals(skipper.further);
  }

  public int hashCode() {
    return base.hashCode();
  }

  public String toString() {
    return "Skipping(" + base + ")";
  }
}
