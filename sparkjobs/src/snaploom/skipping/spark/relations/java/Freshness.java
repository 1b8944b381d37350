package snaploom.skipping;

import org.apache.hadoop.fs.FileStatus;

/**
 * Whether local files are still as Spark listed them, and as they were indexed.
 *
 * <p>Frames and tables hold their listing as long as they live, and Spark reads what a file holds
 * by the time it reads it. So a file that is about to be dropped is looked at once more where that
 * costs microseconds; elsewhere the listing counts.
 */
final class Freshness {
  private Freshness() {}

  /**
   * The signs of an answer, with that of every dropped file that changed since turned to keep.
   *
   * <p>Tags are of the dropped files, in order; none at all where the indexes know none.
   */
  static String confirmed(String signs, String[] tags, Listing listing) {
    StringBuilder confirmed = null;
    int dropped = 0;
    for (int i = 0; i < signs.length(); i++) {
      if (signs.charAt(i) == '0') {
        String tag = dropped < tags.length ? tags[dropped] : "";
        dropped++;
        if (!isAsListed(listing.file(i), tag.isEmpty() ? null : tag)) {
          confirmed = confirmed == null ? new StringBuilder(signs) : confirmed;
          confirmed.setCharAt(i, '1');
        }
      }
    }
    return confirmed == null ? signs : confirmed.toString();
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
