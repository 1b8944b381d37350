package snaploom.skipping;

/** Python's answer: signs of files, and their reasons. */
final class Answer {
  private static final String[] NONE = new String[0];

  /** One sign a file, '0' to drop it and '1' to keep it. */
  final String signs;

  /** The indexes that gave it, for people; empty if they are not told. */
  final String label;

  /** Tags of the files to drop, in order, as the indexes know them; an empty one is not known. */
  final String[] tags;

  /** Signs; in a second line, if there is one, the label; in a third one, if there is one, tags. */
  Answer(String text) {
    String[] lines = text.split("\n", 3);
    this.signs = lines[0];
    this.label = lines.length > 1 ? lines[1] : "";
    this.tags = lines.length > 2 ? lines[2].split(",", -1) : NONE;
  }
}
