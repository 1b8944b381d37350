package snaploom.skipping;

import java.math.BigInteger;
import java.util.List;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.util.Utils;
import scala.math.BigInt;

/** An answer and what was asked. */
final class Decision {
  private final String question;
  final Listing listing;
  final Kept kept;
  private final String signs;

  /** The files that are dropped; null without an answer. */
  final Freshness dropped;

  /** Whether there was an answer at all. */
  final boolean isInformed;

  private final String label;

  /** Without an answer (null), every file is kept. */
  Decision(String question, Listing listing, Answer answer, Settings settings, SQLConf conf) {
    this.question = question;
    this.listing = listing;
    this.signs = answer == null ? null : answer.signs;
    this.dropped =
        answer == null ? null : Freshness.of(signs, answer.tags, listing, settings, conf);
    this.kept = listing.keep(signs);
    this.isInformed = answer != null;
    this.label = answer == null ? "" : answer.label;
  }

  boolean answers(String other, Listing files) {
    return question.equals(other) && listing.isSameAs(files);
  }

  /** This decision with more positions kept. */
  Kept keptWith(List changed) {
    if (changed.isEmpty()) {
      return kept;
    }
    StringBuilder now = new StringBuilder(signs);
    for (int i = 0; i < changed.size(); i++) {
      now.setCharAt(((Integer) changed.get(i)).intValue(), '1');
    }
    return listing.keep(now.toString());
  }

  /** Whether Spark reads what is kept sooner than Comet opens every file (measured, about). */
  boolean isForSpark() {
    return kept.bytes <= (16L << 10) * (listing.count() - kept.count);
  }

  /** The kept bytes' share of something, rounded upwards. */
  BigInt scale(BigInt whole) {
    BigInteger all = BigInteger.valueOf(Math.max(listing.bytes(), 1L));
    BigInteger share = whole.bigInteger().multiply(BigInteger.valueOf(kept.bytes));
    return new BigInt(share.add(all).subtract(BigInteger.ONE).divide(all));
  }

  /** `[skipping by MIN_MAX(id): 3 of 200 files, 1.2 MiB of 80.0 MiB]`. */
  String summary() {
    return "[skipping" + (label.isEmpty() ? "" : " by " + label) + ": " + kept.count + " of " + listing.count() + " files, " + Utils.bytesToString(kept.bytes)
        + " of " + Utils.bytesToString(listing.bytes()) + "]";
  }
}
