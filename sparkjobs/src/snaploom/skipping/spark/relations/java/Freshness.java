package snaploom.skipping;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.execution.datasources.BucketingUtils;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;

/**
 * Whether dropped files are still as Spark listed them, and as they were indexed.
 *
 * <p>Frames and tables hold their listing as long as they live, and Spark reads what a file holds
 * by the time it reads it. So a local file that is dropped is looked at once more, which costs
 * microseconds; elsewhere the listing counts. And what an expression gives depends on the settings
 * by the time it is evaluated: where these are others, no file is as it was indexed.
 */
final class Freshness {
  /** Files that one task looks at: some milliseconds, far more than a thread costs. */
  private static final int PART = 2000;

  private final Listing listing;
  private final int[] dropped;
  private final String[] tags;
  private final Settings settings;
  private final SQLConf conf;

  private Freshness(
      Listing listing, int[] dropped, String[] tags, Settings settings, SQLConf conf) {
    this.settings = settings;
    this.conf = conf;
    this.listing = listing;
    this.dropped = dropped;
    this.tags = tags;
  }

  /**
   * Of the files that an answer drops.
   *
   * @param tags in their order, none at all where none is known
   * @param settings with which it was decided
   * @param conf the settings of the session, as they are at any time
   */
  static Freshness of(
      String signs, String[] tags, Listing listing, Settings settings, SQLConf conf) {
    int[] positions = new int[signs.length()];
    String[] known = new String[positions.length];
    int dropped = 0;
    for (int i = 0; i < positions.length; i++) {
      if (signs.charAt(i) == '0') {
        positions[dropped] = i;
        known[dropped] = dropped < tags.length && !tags[dropped].isEmpty() ? tags[dropped] : null;
        dropped++;
      }
    }
    return new Freshness(
        listing,
        Arrays.copyOf(positions, dropped),
        (String[]) Arrays.copyOf(known, dropped),
        settings,
        conf);
  }

  boolean isEmpty() {
    return dropped.length == 0;
  }

  FileStatus file(Object position) {
    return listing.file(((Integer) position).intValue());
  }

  /** All but those at some positions, in order. */
  Freshness without(List changed) {
    if (changed.isEmpty()) {
      return this;
    }
    int[] owners = new int[dropped.length];
    for (int i = 0, k = 0; i < dropped.length; i++) {
      if (k < changed.size() && ((Integer) changed.get(k)).intValue() == dropped[i]) {
        owners[i] = 1;
        k++;
      }
    }
    return parts(owners, 2)[0];
  }

  /** By partitions of a bucketed scan: each reads the buckets with its remainder. */
  Freshness[] byBucket(int partitions) {
    int[] owners = new int[dropped.length];
    for (int i = 0; i < dropped.length; i++) {
      Option bucket = BucketingUtils.getBucketId(listing.file(dropped[i]).getPath().getName());
      owners[i] = bucket.isEmpty() ? 0 : ((Integer) bucket.get()).intValue() % partitions;
    }
    return parts(owners, partitions);
  }

  private Freshness[] parts(int[] owners, int count) {
    int[] sizes = new int[count];
    for (int i = 0; i < owners.length; i++) {
      sizes[owners[i]]++;
    }
    Freshness[] parts = new Freshness[count];
    for (int k = 0; k < count; k++) {
      parts[k] = new Freshness(listing, new int[sizes[k]], new String[sizes[k]], settings, conf);
    }
    for (int i = owners.length - 1; i >= 0; i--) {
      Freshness part = parts[owners[i]];
      sizes[owners[i]]--;
      part.dropped[sizes[owners[i]]] = dropped[i];
      part.tags[sizes[owners[i]]] = tags[i];
    }
    return parts;
  }

  /**
   * Positions of the files that are not what was indexed any more.
   *
   * <p>Many files are looked at by all processors: a look is a call to the system, and little else.
   */
  List changed() throws Exception {
    if (!settings.isEvaluatedAlike(conf)) {
      List all = new ArrayList();
      for (int i = 0; i < dropped.length; i++) {
        all.add(Integer.valueOf(dropped[i]));
      }
      return all;
    }
    if (dropped.length <= PART) {
      return changed(0);
    }
    List parts = new ArrayList();
    for (int first = 0; first < dropped.length; first += PART) {
      final int begin = first;
      parts.add(
          new Callable() {
            public Object call() {
              return changed(begin);
            }
          });
    }
    List found = new ArrayList();
    List all = Parallel.all(parts, Runtime.getRuntime().availableProcessors());
    for (int i = 0; i < all.size(); i++) {
      found.addAll((List) all.get(i));
    }
    return found;
  }

  /**
   * The same where some, which are spread evenly, show that there are any; else nothing.
   *
   * <p>Which of many files changed is known before partitions are made, so that several tasks share
   * them; where few did, the guard finds them, and its look is the only one at all files.
   */
  List changedIfMany() throws Exception {
    int step = Math.max(1, dropped.length / PART);
    for (int i = 0; i < dropped.length; i += step) {
      if (!isAsListed(listing.file(dropped[i]), tags[i])) {
        return changed();
      }
    }
    return Collections.EMPTY_LIST;
  }

  private List changed(int begin) {
    List positions = Collections.EMPTY_LIST;
    for (int i = begin; i < Math.min(dropped.length, begin + PART); i++) {
      if (!isAsListed(listing.file(dropped[i]), tags[i])) {
        positions = positions.isEmpty() ? new ArrayList() : positions;
        positions.add(Integer.valueOf(dropped[i]));
      }
    }
    return positions;
  }

  private static boolean isAsListed(FileStatus listed, String tag) {
    try {
      return !Tags.isLocal(listed.getPath()) || Tags.isAsListed(listed, tag);
    } catch (Exception gone) {
      return false;
    }
  }
}
