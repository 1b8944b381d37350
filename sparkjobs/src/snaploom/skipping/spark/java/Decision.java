package snaploom.skipping;

/** An answer and what was asked. */
final class Decision {
  private final String question;
  final Listing listing;
  final Kept kept;

  Decision(String question, Listing listing, Kept kept) {
    this.question = question;
    this.listing = listing;
    this.kept = kept;
  }

  boolean answers(String other, Listing files) {
    return question.equals(other) && listing.isSameAs(files);
  }

  boolean drops() {
    return kept.count < listing.count();
  }

  /** `3 of 200 files, 1.2 of 80.0 MiB`. */
  String summary() {
    return kept.count + " of " + listing.count() + " files, " + mebibytes(kept.bytes) + " of "
        + mebibytes(listing.bytes()) + " MiB";
  }

  private static String mebibytes(long bytes) {
    long tenths = Math.round(bytes / 104857.6);
    return tenths / 10L + "." + tenths % 10L;
  }
}
