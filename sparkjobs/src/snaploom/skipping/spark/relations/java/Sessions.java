package snaploom.skipping;

import java.util.Iterator;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import scala.runtime.AbstractFunction1;

/**
 * Where the rule is installed: in a session and all that `newSession` makes from it.
 *
 * <p>They share their extensions, and Spark asks these for rules at the start of each optimisation,
 * before it reads the session's own list. That is when the rule is put into the list, so that new
 * sessions have it, and sessions whose user replaced the list have it again.
 */
final class Sessions {
  private static final Map SLOTS = new WeakHashMap();

  private Sessions() {}

  static synchronized void install(SparkSession session, Installation installation) {
    Slot slot = (Slot) SLOTS.get(session.extensions());
    if (slot == null) {
      slot = new Slot();
      SLOTS.put(session.extensions(), slot);
      session.extensions().injectOptimizerRule(new Keeper(slot));
    }
    slot.installation = installation;
    ensure(session, slot);
  }

  static synchronized void uninstall(SparkSession session) {
    Slot slot = (Slot) SLOTS.get(session.extensions());
    if (slot != null) {
      slot.installation = null;
    }
  }

  static synchronized boolean isInstalled(SparkSession session) {
    Slot slot = (Slot) SLOTS.get(session.extensions());
    return slot != null && slot.installation != null;
  }

  static synchronized void ensure(SparkSession session, Slot slot) {
    ExperimentalMethods methods = session.experimental();
    ensureStrategy(methods);
    Iterator rules = Scala.iterator(methods.extraOptimizations());
    while (rules.hasNext()) {
      Object rule = rules.next();
      if (rule instanceof SkippingRule && ((SkippingRule) rule).slot == slot) {
        return;
      }
    }
    methods.extraOptimizations_$eq(
        (scala.collection.immutable.Seq)
            methods.extraOptimizations().appended(new SkippingRule(slot)));
  }

  private static void ensureStrategy(ExperimentalMethods methods) {
    Iterator strategies = Scala.iterator(methods.extraStrategies());
    while (strategies.hasNext()) {
      if (strategies.next() instanceof GuardedScans) {
        return;
      }
    }
    try {
      methods.extraStrategies_$eq(
          (scala.collection.immutable.Seq)
              methods.extraStrategies().appended(new GuardedScans()));
    } catch (LinkageError unfit) {
      // Scans of a Spark that it does not fit are not guarded, and read every file.
      Failures.add(unfit);
    }
  }
}

/** Makes sure of the rule, and returns one that does nothing: it is not the place for it. */
final class Keeper extends AbstractFunction1 {
  private final Slot slot;

  Keeper(Slot slot) {
    this.slot = slot;
  }

  public Object apply(Object session) {
    if (slot.installation != null) {
      Sessions.ensure((SparkSession) session, slot);
    }
    return new Untouched();
  }
}

/** A rule that changes nothing. */
final class Untouched extends Rule {
  public TreeNode apply(TreeNode plan) {
    return plan;
  }
}
