package snaploom.skipping;

/** What Python answered: signs of files, and what they follow from. */
final class Answer {
  /** One sign a file, '0' to drop it and '1' to keep it. */
  final String signs;

  /** The indexes that gave it, for people; empty if they are not told. */
  final String label;

  /** Signs, and in a second line, if there is one, the label. */
  Answer(String text) {
    int end = text.indexOf('\n');
    this.signs = end < 0 ? text : text.substring(0, end);
    this.label = end < 0 ? "" : text.substring(end + 1);
  }
}
