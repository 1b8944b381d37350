package snaploom.skipping;

import java.io.File;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.attribute.BasicFileAttributes;
import org.apache.hadoop.fs.FileStatus;

/**
 * Whether local files are still as Spark listed them.
 *
 * <p>Frames and tables hold their listing as long as they live, and Spark reads what a file holds
 * by the time it reads it. So a file that is about to be dropped is looked at once more where that
 * costs microseconds; elsewhere the listing counts.
 */
final class Freshness {
  private Freshness() {}

  /** The signs of an answer, with that of every dropped file that changed since turned to keep. */
  static String confirmed(String signs, Listing listing) {
    StringBuilder confirmed = null;
    for (int i = 0; i < signs.length(); i++) {
      if (signs.charAt(i) == '0' && !isAsListed(listing.file(i))) {
        confirmed = confirmed == null ? new StringBuilder(signs) : confirmed;
        confirmed.setCharAt(i, '1');
      }
    }
    return confirmed == null ? signs : confirmed.toString();
  }

  private static boolean isAsListed(FileStatus listed) {
    URI uri = listed.getPath().toUri();
    if (!"file".equals(uri.getScheme())) {
      return true;
    }
    try {
      BasicFileAttributes now =
          Files.readAttributes(new File(uri.getPath()).toPath(), BasicFileAttributes.class);
      return now.isRegularFile()
          && now.size() == listed.getLen()
          && now.lastModifiedTime().toMillis() == listed.getModificationTime();
    } catch (Exception gone) {
      return false;
    }
  }
}
