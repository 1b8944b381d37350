package snaploom.skipping;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.Callable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;

/** Footers and states of files of any file system that Hadoop knows, many at once. */
final class RemoteFiles {
  /** Requests under way; they wait for the store, not for a processor. */
  private static final int THREADS = 32;
  /** Length of a footer, and the magic word. */
  private static final int TAIL = 8;
  /** Mark at the end of a file, unless the footer is encrypted. */
  private static final String MAGIC = "PAR1";

  private RemoteFiles() {}

  /**
   * The end of each file from where its Parquet footer begins, after its length in four bytes; a
   * negative length stands before a message. `first` bytes are asked for before the length of the
   * footer is known.
   */
  static byte[] footers(
      final String[] paths, final long[] lengths, final int first, final Configuration conf)
      throws Exception {
    List tasks = new ArrayList();
    for (int i = 0; i < paths.length; i++) {
      final String path = paths[i];
      final long length = lengths[i];
      tasks.add(
          new Callable() {
            public Object call() throws Exception {
              try {
                return footer(new Path(path), length, first, conf);
              } catch (Exception failure) {
                return String.valueOf(failure);
              }
            }
          });
    }
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    Iterator found = Parallel.all(tasks, THREADS).iterator();
    while (found.hasNext()) {
      Object each = found.next();
      boolean isMessage = each instanceof String;
      byte[] told =
          isMessage ? ((String) each).getBytes(StandardCharsets.UTF_8) : (byte[]) each;
      out.writeInt(isMessage ? -told.length : told.length);
      out.write(told);
    }
    return bytes.toByteArray();
  }

  /** A line a file: length, time and, where there is one, tag, between tabs; empty: no such file. */
  static String states(final String[] paths, final Configuration conf) throws Exception {
    List tasks = new ArrayList();
    for (int i = 0; i < paths.length; i++) {
      final String path = paths[i];
      tasks.add(
          new Callable() {
            public Object call() throws Exception {
              try {
                return state(new Path(path), conf);
              } catch (Exception gone) {
                return "";
              }
            }
          });
    }
    StringBuilder out = new StringBuilder();
    Iterator found = Parallel.all(tasks, THREADS).iterator();
    while (found.hasNext()) {
      out.append((String) found.next()).append('\n');
    }
    return out.toString();
  }

  private static byte[] footer(Path path, long length, int first, Configuration conf)
      throws IOException {
    if (length < TAIL) {
      throw new IOException(length + " bytes are no Parquet file");
    }
    FSDataInputStream in = path.getFileSystem(conf).open(path);
    try {
      byte[] end = new byte[(int) Math.min(length, first)];
      in.readFully(length - end.length, end);
      int at = end.length - TAIL;
      if (!new String(end, at + 4, 4, StandardCharsets.ISO_8859_1).equals(MAGIC)) {
        throw new IOException("no Parquet file: it does not end in " + MAGIC);
      }
      long size = TAIL;
      for (int i = 0; i < 4; i++) {
        size += (long) (end[at + i] & 0xff) << (8 * i);
      }
      if (size > length) {
        throw new IOException("a footer of " + size + " bytes in a file of " + length);
      }
      byte[] footer = new byte[(int) size];
      int known = (int) Math.min(size, end.length);
      System.arraycopy(end, end.length - known, footer, footer.length - known, known);
      in.readFully(length - size, footer, 0, footer.length - known);
      return footer;
    } finally {
      in.close();
    }
  }

  private static String state(Path path, Configuration conf) throws IOException {
    FileStatus found = path.getFileSystem(conf).getFileStatus(path);
    String tag = Tags.of(found);
    String told = found.getLen() + "\t" + found.getModificationTime();
    return tag == null ? told : told + "\t" + tag;
  }
}
