package snaploom.skipping;

import java.io.File;
import java.io.IOException;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.attribute.FileTime;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.fs.EtagSource;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;

/**
 * Tags that distinguish contents of a path beside length and time.
 *
 * <p>An object store calls each content by a tag. A local disk has the time at which the inode last
 * changed, which nobody can set, and its number: together they differ wherever a file was written
 * or put into the place of another one, whatever its length and time were made to be. HDFS numbers
 * its files as they are created: whoever replaces a file, there only ever by a new one, gives the
 * path another number. Only what is appended to a file, or cut off, keeps it.
 */
final class Tags {
  private static final boolean IS_UNIX =
      FileSystems.getDefault().supportedFileAttributeViews().contains("unix");

  /** Of a name node that numbers no files: Hadoop's HdfsConstants.GRANDFATHER_INODE_ID. */
  private static final long UNNUMBERED = 0L;

  private Tags() {}

  /** The tag in the store's listing, or null. */
  static String listed(FileStatus file) {
    if (file instanceof HdfsFileStatus) {
      long number = ((HdfsFileStatus) file).getFileId();
      return number == UNNUMBERED ? null : "hdfs." + number;
    }
    return file instanceof EtagSource ? ((EtagSource) file).getEtag() : null;
  }

  /** The same, and of a local file what it is now; null where there is neither. */
  static String of(FileStatus file) throws IOException {
    return isLocal(file.getPath()) ? local(file(file.getPath())) : listed(file);
  }

  static boolean isLocal(Path path) {
    return "file".equals(path.toUri().getScheme());
  }

  static java.nio.file.Path file(Path path) {
    return new File(path.toUri().getPath()).toPath();
  }

  private static String local(java.nio.file.Path file) throws IOException {
    return IS_UNIX ? local(Files.readAttributes(file, "unix:ctime,ino")) : null;
  }

  /** The form in which `hadoop.py` writes it, too. */
  static String local(Map attributes) {
    long changed = ((FileTime) attributes.get("ctime")).to(TimeUnit.NANOSECONDS);
    return changed + "." + Long.toUnsignedString((Long) attributes.get("ino"));
  }

  /** Whether a local file is as it was listed, and has the tag that is known (null: any). */
  static boolean isAsListed(FileStatus listed, String tag) throws IOException {
    java.nio.file.Path file = file(listed.getPath());
    String wanted = "size,lastModifiedTime,isRegularFile";
    boolean isTagged = tag != null && IS_UNIX;
    Map now = Files.readAttributes(file, isTagged ? "unix:ctime,ino," + wanted : wanted);
    return Boolean.TRUE.equals(now.get("isRegularFile"))
        && ((Long) now.get("size")).longValue() == listed.getLen()
        && ((FileTime) now.get("lastModifiedTime")).toMillis() == listed.getModificationTime()
        && (!isTagged || local(now).equals(tag));
  }
}
