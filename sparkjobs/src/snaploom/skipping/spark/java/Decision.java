package snaploom.skipping;

import org.apache.spark.util.Utils;

/** An answer and what was asked. */
final class Decision {
  private final String question;
  final Listing listing;
  final Kept kept;

  /** Whether there was an answer at all. */
  final boolean isInformed;

  Decision(String question, Listing listing, Kept kept, boolean isInformed) {
    this.question = question;
    this.listing = listing;
    this.kept = kept;
    this.isInformed = isInformed;
  }

  boolean answers(String other, Listing files) {
    return question.equals(other) && listing.isSameAs(files);
  }

  /** `3 of 200 files, 1.2 MiB of 80.0 MiB`. */
  String summary() {
    return kept.count + " of " + listing.count() + " files, " + Utils.bytesToString(kept.bytes)
        + " of " + Utils.bytesToString(listing.bytes());
  }
}
