package snaploom.skipping;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/** Files as a `FileIndex` lists them, in order. */
final class Listing {
  final Seq directories;
  private final List files = new ArrayList();
  private boolean hasTags = false;

  Listing(Seq directories) {
    this.directories = directories;
    Iterator all = Scala.iterator(directories);
    while (all.hasNext()) {
      Iterator inside = Scala.iterator(((PartitionDirectory) all.next()).files());
      while (inside.hasNext()) {
        FileStatus file = ((FileStatusWithMetadata) inside.next()).fileStatus();
        hasTags = hasTags || Tags.listed(file) != null;
        files.add(file);
      }
    }
  }

  int count() {
    return files.size();
  }

  FileStatus file(int position) {
    return (FileStatus) files.get(position);
  }

  /** Same files in the same order, as far as a file system tells them apart. */
  boolean isSameAs(Listing other) {
    if (files.size() != other.files.size()) {
      return false;
    }
    for (int i = 0; i < files.size(); i++) {
      FileStatus mine = (FileStatus) files.get(i);
      FileStatus theirs = (FileStatus) other.files.get(i);
      if (mine != theirs && !isSame(mine, theirs)) {
        return false;
      }
    }
    return true;
  }

  private static boolean isSame(FileStatus mine, FileStatus theirs) {
    String tag = Tags.listed(mine);
    return mine.getLen() == theirs.getLen()
        && mine.getModificationTime() == theirs.getModificationTime()
        && mine.getPath().equals(theirs.getPath())
        && (tag == null ? Tags.listed(theirs) == null : tag.equals(Tags.listed(theirs)));
  }

  /** Ends the header, which is still open, and adds the files. */
  void write(StringBuilder out) {
    if (hasTags) {
      List tags = new ArrayList();
      for (Object file : files) {
        tags.add(Tags.listed((FileStatus) file));
      }
      writeTags(out, tags);
    }
    writeFiles(out);
  }

  /** The same with tags of local files: they take a look at each, so queries do without. */
  void writeWithTags(StringBuilder out) {
    List tags = new ArrayList();
    for (Object file : files) {
      try {
        tags.add(Tags.of((FileStatus) file));
      } catch (IOException gone) {
        tags.add(null);
      }
    }
    writeTags(out, tags);
    writeFiles(out);
  }

  private static void writeTags(StringBuilder out, List tags) {
    out.append(",\"etags\":[");
    for (int i = 0; i < tags.size(); i++) {
      out.append(i == 0 ? "" : ",");
      Json.stringOrNull(out, (String) tags.get(i));
    }
    out.append(']');
  }

  private void writeFiles(StringBuilder out) {
    out.append("}\n");
    for (int i = 0; i < files.size(); i++) {
      out.append(i == 0 ? "" : ",").append(((FileStatus) files.get(i)).getLen());
    }
    out.append('\n');
    for (int i = 0; i < files.size(); i++) {
      out.append(i == 0 ? "" : ",").append(((FileStatus) files.get(i)).getModificationTime());
    }
    for (int i = 0; i < files.size(); i++) {
      String path = ((FileStatus) files.get(i)).getPath().toString();
      out.append('\n').append(path.indexOf('\n') < 0 ? path : "");
    }
  }

  /** Values of the partition columns, an array a file, as a field of the open header. */
  void writePartitions(StringBuilder out, StructType schema) {
    out.append(",\"partitions\":[");
    String separator = "";
    Iterator all = Scala.iterator(directories);
    while (all.hasNext()) {
      PartitionDirectory directory = (PartitionDirectory) all.next();
      StringBuilder values = new StringBuilder();
      row(values, directory.values(), schema);
      for (int i = 0; i < directory.files().size(); i++) {
        out.append(separator).append(values);
        separator = ",";
      }
    }
    out.append(']');
  }

  private static void row(StringBuilder out, InternalRow values, StructType schema) {
    StructField[] fields = schema.fields();
    out.append('[');
    for (int i = 0; i < fields.length; i++) {
      out.append(i == 0 ? "" : ",");
      Values.write(out, values.get(i, fields[i].dataType()), fields[i].dataType());
    }
    out.append(']');
  }

  /** The listing without the files whose sign in the answer is '0'. */
  Kept keep(String answer) {
    List kept = new ArrayList();
    int position = 0;
    int count = 0;
    long bytes = 0L;
    Iterator all = Scala.iterator(directories);
    while (all.hasNext()) {
      PartitionDirectory directory = (PartitionDirectory) all.next();
      List inside = new ArrayList();
      Iterator candidates = Scala.iterator(directory.files());
      while (candidates.hasNext()) {
        FileStatusWithMetadata file = (FileStatusWithMetadata) candidates.next();
        if (answer == null || answer.charAt(position) == '1') {
          inside.add(file);
          bytes += file.getLen();
        }
        position++;
      }
      count += inside.size();
      if (!inside.isEmpty()) {
        kept.add(new PartitionDirectory(directory.values(), Scala.seq(inside)));
      }
    }
    return new Kept(answer == null ? directories : Scala.seq(kept), count, bytes);
  }

  long bytes() {
    long bytes = 0L;
    for (int i = 0; i < files.size(); i++) {
      bytes += ((FileStatus) files.get(i)).getLen();
    }
    return bytes;
  }
}
