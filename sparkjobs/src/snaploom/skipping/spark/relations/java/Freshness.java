package snaploom.skipping;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import org.apache.hadoop.fs.FileStatus;

/**
 * Whether local files are still as Spark listed them, and as they were indexed.
 *
 * <p>Frames and tables hold their listing as long as they live, and Spark reads what a file holds
 * by the time it reads it. So a file that is about to be dropped is looked at once more where that
 * costs microseconds; elsewhere the listing counts.
 */
final class Freshness {
  /** Files that one task looks at: some milliseconds, far more than a thread costs. */
  private static final int PART = 2000;

  private Freshness() {}

  /**
   * The signs of an answer, with that of every dropped file that changed since turned to keep.
   *
   * <p>Tags are of the dropped files, in order; none at all where the indexes know none. Many files
   * are looked at by all processors: a look is a call to the system, and little else.
   */
  static String confirmed(String signs, final String[] tags, final Listing listing)
      throws Exception {
    final int[] dropped = dropped(signs);
    if (dropped.length == 0) {
      return signs;
    }
    List parts = new ArrayList();
    for (int first = 0; first < dropped.length; first += PART) {
      final int begin = first;
      parts.add(
          new Callable() {
            public Object call() {
              return changed(dropped, begin, tags, listing);
            }
          });
    }
    List found =
        parts.size() == 1
            ? Collections.singletonList(changed(dropped, 0, tags, listing))
            : Parallel.all(parts, Runtime.getRuntime().availableProcessors());
    StringBuilder confirmed = new StringBuilder(signs);
    boolean isChanged = false;
    for (int i = 0; i < found.size(); i++) {
      List positions = (List) found.get(i);
      for (int k = 0; k < positions.size(); k++) {
        confirmed.setCharAt(((Integer) positions.get(k)).intValue(), '1');
        isChanged = true;
      }
    }
    return isChanged ? confirmed.toString() : signs;
  }

  /** Positions of the files that are dropped. */
  private static int[] dropped(String signs) {
    int[] positions = new int[signs.length()];
    int count = 0;
    for (int i = 0; i < positions.length; i++) {
      if (signs.charAt(i) == '0') {
        positions[count] = i;
        count++;
      }
    }
    return Arrays.copyOf(positions, count);
  }

  /** Which of the dropped files from `begin` on are not what was indexed any more. */
  private static List changed(int[] dropped, int begin, String[] tags, Listing listing) {
    List positions = new ArrayList();
    for (int i = begin; i < Math.min(dropped.length, begin + PART); i++) {
      String tag = i < tags.length ? tags[i] : "";
      if (!isAsListed(listing.file(dropped[i]), tag.isEmpty() ? null : tag)) {
        positions.add(Integer.valueOf(dropped[i]));
      }
    }
    return positions;
  }

  private static boolean isAsListed(FileStatus listed, String tag) {
    if (!Tags.isLocal(listed.getPath())) {
      return true;
    }
    try {
      return Tags.isAsListed(listed, tag);
    } catch (Exception gone) {
      return false;
    }
  }
}
