package snaploom.skipping;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;

/** Is serialised as Spark's own, with those of the dropped files that have changed. */
final class GuardedPartition extends FilePartition {
  private final transient Freshness dropped;
  private final transient boolean isByBucket;
  private final transient Callable everything;

  GuardedPartition(
      int index,
      PartitionedFile[] files,
      Freshness dropped,
      boolean isByBucket,
      Callable everything) {
    super(index, files);
    this.dropped = dropped;
    this.isByBucket = isByBucket;
    this.everything = everything;
  }

  /** Spark's partition without skipping, which handles everything else, failures included. */
  public Object writeReplace() throws Exception {
    List changed = dropped.changed();
    if (changed.isEmpty()) {
      return new FilePartition(index(), files());
    }
    Set paths = new HashSet();
    for (int i = 0; i < changed.size(); i++) {
      paths.add(dropped.file(changed.get(i)).getPath());
    }
    List all = new ArrayList(Arrays.asList(files()));
    Object[] partitions = (Object[]) everything.call();
    for (int i = 0; i < partitions.length; i++) {
      if (!isByBucket || i == index()) {
        PartitionedFile[] candidates = ((FilePartition) partitions[i]).files();
        for (int k = 0; k < candidates.length; k++) {
          if (paths.contains(candidates[k].toPath())) {
            all.add(candidates[k]);
          }
        }
      }
    }
    return new FilePartition(
        index(), (PartitionedFile[]) all.toArray(new PartitionedFile[all.size()]));
  }
}
