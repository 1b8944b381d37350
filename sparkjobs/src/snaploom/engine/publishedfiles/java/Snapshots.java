package snaploom.published;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils$;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.LongType$;
import org.apache.spark.unsafe.types.UTF8String;

/** Snapshots by position: the folder of each, its time, and its files. */
final class Snapshots {
  /** Begins an answer that is not one but a failure; the rest is its message. */
  private static final String FAILED = "!";
  /** Snapshots of one question: an answer of some hundred kilobytes. */
  private static final int AT_ONCE = 1000;

  /** Which versions of which snapshots these are. */
  final String identity;
  /** Length of all files; less than zero where it is not known. */
  final long bytes;

  private final String[] folders;
  private final InternalRow[] values;
  private final Function files;

  /**
   * @param identity which versions these are.
   * @param bytes length of all files, or -1.
   * @param folders names of folders, a line each; no name has a line break.
   * @param type of the partition column: long or string.
   * @param files from positions, a line each, to files, a line a position: the length of each, a
   *     space, and its name, with `/` between two.
   */
  Snapshots(String identity, long bytes, String folders, DataType type, Function files) {
    this.identity = identity;
    this.bytes = bytes;
    this.folders = folders.split("\n");
    this.files = files;
    this.values = new InternalRow[this.folders.length];
    for (int i = 0; i < values.length; i++) {
      String folder = this.folders[i];
      String text =
          ExternalCatalogUtils$.MODULE$.unescapePathName(folder.substring(folder.indexOf('=') + 1));
      Object value =
          LongType$.MODULE$.equals(type) ? (Object) Long.valueOf(text) : UTF8String.fromString(text);
      values[i] = new GenericInternalRow(new Object[] {value});
    }
  }

  int count() {
    return folders.length;
  }

  String folder(int position) {
    return folders[position];
  }

  InternalRow value(int position) {
    return values[position];
  }

  /** Lengths of files by name, by position. */
  Map files(List positions) {
    Map found = new HashMap();
    for (int first = 0; first < positions.size(); first += AT_ONCE) {
      List some = positions.subList(first, Math.min(first + AT_ONCE, positions.size()));
      StringBuilder question = new StringBuilder();
      for (Object position : some) {
        question.append(question.length() == 0 ? "" : "\n").append(position);
      }
      String answer = (String) files.apply(question.toString());
      if (answer.startsWith(FAILED)) {
        throw new IllegalArgumentException(answer.substring(FAILED.length()));
      }
      String[] lines = answer.split("\n", -1);
      for (int i = 0; i < some.size(); i++) {
        found.put(some.get(i), lengths(lines[i]));
      }
    }
    return found;
  }

  private static Map lengths(String line) {
    Map found = new LinkedHashMap();
    if (!line.isEmpty()) {
      for (String file : line.split("/")) {
        int space = file.indexOf(' ');
        found.put(file.substring(space + 1), Long.valueOf(file.substring(0, space)));
      }
    }
    return found;
  }
}
