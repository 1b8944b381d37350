package snaploom.skipping;

import java.util.Iterator;
import java.util.List;
import java.util.TreeSet;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.immutable.Seq;

/**
 * Asks for one relation which files to keep, and remembers the last answer.
 *
 * <p>What is dropped follows from the filters that Spark hands over with each listing, not from those
 * that were seen when the plan was optimised: rules of others may still change the plan. Only what
 * Spark does not hand over is from then: keys of a join, and conditions on columns of partitions and
 * of data at once.
 */
final class Skipper {
  private final FileRelation relation;
  private final Installation installation;
  private final SparkSession session;

  /** Texts of the conditions that Spark does not hand over. */
  final TreeSet further = new TreeSet();

  private final boolean needsPartitions;

  /** As the query was planned; expressions keep what they have read of settings by then. */
  private final Settings planned;

  /** Once settings changed, nobody knows which of them an expression has read. */
  private volatile boolean isOneEvaluation = true;

  private volatile Decision last = null;
  private volatile Decision estimate = null;

  Skipper(
      FileRelation relation, Installation installation, SparkSession session, List further) {
    this.relation = relation;
    this.installation = installation;
    this.session = session;
    add(this.further, further.iterator());
    this.needsPartitions = speakOfPartitions(further);
    this.planned = new Settings(installation.settingNames);
  }

  FileIndex base() {
    return relation.index;
  }

  /** Decides ahead of the run, so that Spark plans joins with the size that is left. */
  Decision estimate(Seq partitionFilters, Seq dataFilters) {
    Listing listing = new Listing(base().listFiles(partitionFilters, dataFilters));
    estimate = decide("estimate", listing, partitionFilters, dataFilters);
    return estimate;
  }

  Seq list(Seq partitionFilters, Seq dataFilters) {
    Seq directories = base().listFiles(partitionFilters, dataFilters);
    Guard guard = Guard.listing();
    if (guard == null
        || (partitionFilters.isEmpty() && dataFilters.isEmpty() && further.isEmpty())) {
      return directories;
    }
    try {
      Listing listing = new Listing(directories);
      Decision decision = decide("list", listing, partitionFilters, dataFilters);
      if (decision.dropped == null) {
        return directories;
      }
      // What is seen to have changed since it was listed is kept, and the rest is guarded.
      List changed = decision.dropped.changedIfMany();
      Seq kept = decision.keptWith(changed).directories;
      guard.hold(decision.dropped.without(changed));
      return kept;
    } catch (Throwable failure) {
      Failures.add(failure);
      return directories;
    }
  }

  long sizeInBytes() {
    Decision decision = estimate;
    return decision == null ? base().sizeInBytes() : decision.kept.bytes;
  }

  private Decision decide(String mode, Listing listing, Seq partitionFilters, Seq dataFilters) {
    StringBuilder header = new StringBuilder();
    Settings settings = new Settings(installation.settingNames);
    isOneEvaluation = isOneEvaluation && settings.evaluatesAs(planned);
    relation.describe(header, settings);
    header.append(",\"isOneEvaluation\":").append(isOneEvaluation);
    int fixed = header.length();
    filters(header, partitionFilters, dataFilters);
    String question = header.toString();
    Decision known = last;
    if (known != null && known.answers(question, listing)) {
      return known;
    }
    Answer answer = null;
    if (isReadBy(settings) && listing.count() > 0) {
      header.insert(fixed, ",\"mode\":\"" + mode + "\"");
      if (needsPartitions) {
        listing.writePartitions(header, relation.partitionSchema);
      }
      answer = installation.decide(header.toString(), listing);
    }
    Decision decision = new Decision(question, listing, answer, settings, conf());
    last = decision;
    return decision;
  }

  /** Where all conditions on partitions are handed over, Spark has listed what meets them. */
  private boolean speakOfPartitions(List conditions) {
    for (Object condition : conditions) {
      Iterator columns = Scala.iterator(((Expression) condition).references().toSeq());
      while (columns.hasNext()) {
        String name = ((Attribute) columns.next()).name();
        if (relation.partitionSchema.getFieldIndex(name).isDefined()) {
          return true;
        }
      }
    }
    return false;
  }

  /** Readers take some settings from the relation's session and some from the running one. */
  private boolean isReadBy(Settings settings) {
    return new Settings(conf(), installation.settingNames).isSameAs(settings);
  }

  private SQLConf conf() {
    return ((org.apache.spark.sql.classic.SparkSession) session).sessionState().conf();
  }

  private void filters(StringBuilder out, Seq partitionFilters, Seq dataFilters) {
    // Sorted and without doubles, so that the same question has the same text.
    TreeSet texts = new TreeSet(further);
    add(texts, Scala.iterator(partitionFilters));
    add(texts, Scala.iterator(dataFilters));
    out.append(",\"filters\":[");
    String separator = "";
    for (Object text : texts) {
      out.append(separator).append((String) text);
      separator = ",";
    }
    out.append(']');
  }

  private void add(TreeSet texts, Iterator filters) {
    while (filters.hasNext()) {
      StringBuilder text = new StringBuilder();
      new Expressions(text, relation.names).write((Expression) filters.next());
      texts.add(text.toString());
    }
  }
}
