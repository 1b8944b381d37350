package snaploom.skipping;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.NoopCache$;
import org.apache.spark.sql.execution.datasources.FileStatusCache;
import org.apache.spark.sql.execution.datasources.PartitionSpec;
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;
import org.apache.spark.sql.types.StructType;
import scala.None$;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;

/** The same as `SkippingFileIndex` for scans of the second generation, which want this base. */
final class SkippingFileIndexV2 extends PartitioningAwareFileIndex {
  final PartitioningAwareFileIndex base;
  final Skipper skipper;

  SkippingFileIndexV2(SparkSession session, Skipper skipper) {
    super(session, (Map) Map$.MODULE$.empty(), (Option) None$.MODULE$,
        (FileStatusCache) NoopCache$.MODULE$);
    this.base = (PartitioningAwareFileIndex) skipper.base();
    this.skipper = skipper;
  }

  public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
    return skipper.list(partitionFilters, dataFilters);
  }

  public long sizeInBytes() {
    return skipper.sizeInBytes();
  }

  public PartitionSpec partitionSpec() {
    return base.partitionSpec();
  }

  public scala.collection.mutable.LinkedHashMap leafFiles() {
    return base.leafFiles();
  }

  public Map leafDirToChildrenFiles() {
    return base.leafDirToChildrenFiles();
  }

  public Seq rootPaths() {
    return base.rootPaths();
  }

  public void refresh() {
    base.refresh();
  }

  public StructType partitionSchema() {
    return base.partitionSchema();
  }

  public boolean equals(Object other) {
    return other instanceof SkippingFileIndexV2
        && ((SkippingFileIndexV2) other).base.equals(base)
        && ((SkippingFileIndexV2) other).skipper.further.equals(skipper.further);
  }

  public int hashCode() {
    return base.hashCode();
  }
}
