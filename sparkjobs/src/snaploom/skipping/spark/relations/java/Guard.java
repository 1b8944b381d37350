package snaploom.skipping;

import java.lang.reflect.Field;
import java.util.Arrays;
import java.util.concurrent.Callable;
import org.apache.spark.Partition;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;

/**
 * Looks once more at the files that a scan dropped, whenever the scan is run.
 *
 * <p>A frame is planned once and read as often as it is collected, and so is its RDD: Spark keeps
 * which files to read, and reads what they hold by then. Whoever starts a run, Spark hands each
 * partition of the scan to a task by serialising it. One partition looks then, and takes along what
 * changed. Only scans that are guarded so leave out files.
 */
public final class Guard {
  private static final ThreadLocal LISTING = new ThreadLocal();

  private Freshness dropped = null;
  private RDD guarded = null;

  /** The scan that lists its files in this thread; null if it is none of ours. */
  static Guard listing() {
    return (Guard) LISTING.get();
  }

  /** The scan begins to list its files. */
  public void begin() {
    LISTING.set(this);
  }

  /** The scan has listed its files. */
  public void end() {
    LISTING.remove();
  }

  synchronized void hold(Freshness files) {
    dropped = files;
  }

  /** The same RDD of a scan, whose partitions look. */
  public synchronized RDD over(RDD read, final FileSourceScanExec scan) {
    if (read == guarded || !isNeeded()) {
      return read;
    }
    try {
      guard(read, scan);
    } catch (Exception unfit) {
      // Unguarded, it must not drop a file.
      throw new IllegalStateException(unfit);
    }
    guarded = read;
    return read;
  }

  private void guard(RDD read, FileSourceScanExec scan) throws Exception {
    // Made now, because a task is serialised in a thread without a session.
    final FileSourceScanExec plain = GuardedScans.withoutSkipping(scan);
    Callable everything =
        new Callable() {
          public Object call() {
            return plain.inputRDD().partitions();
          }
        };
    Object[] partitions = over(read.partitions(), scan.bucketedScan(), everything);
    Field field = RDD.class.getDeclaredField("partitions_");
    field.setAccessible(true);
    field.set(read, Arrays.copyOf(partitions, partitions.length, Partition[].class));
  }

  /** As which a scan goes to executors. */
  public FileSourceScanExec plain(FileSourceScanExec scan) {
    return GuardedScans.plain(scan);
  }

  /**
   * Partitions of files, of which those look that answer for dropped ones.
   *
   * @param isByBucket whether a partition reads the files of one bucket, and no other one may
   * @param everything gives the partitions of the same scan without skipping
   */
  synchronized Object[] over(Object[] read, boolean isByBucket, Callable everything) {
    if (!isNeeded()) {
      return read;
    }
    // Where nothing is left to read, one partition more, for nothing else would ever look.
    int count = Math.max(read.length, 1);
    Freshness[] parts =
        isByBucket ? dropped.byBucket(count) : new Freshness[] {dropped};
    Object[] guarded = Arrays.copyOf(read, count, Object[].class);
    for (int i = 0; i < parts.length; i++) {
      int at = count - parts.length + i;
      PartitionedFile[] files =
          at < read.length ? ((FilePartition) read[at]).files() : new PartitionedFile[0];
      guarded[at] = new GuardedPartition(at, files, parts[i], isByBucket, everything);
    }
    return guarded;
  }

  private boolean isNeeded() {
    return dropped != null && !dropped.isEmpty();
  }
}
