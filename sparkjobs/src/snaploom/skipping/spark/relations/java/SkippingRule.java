package snaploom.skipping;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.internal.SQLConf;

/**
 * The optimizer rule. It runs among the last: caches are matched, views resolved, partitions
 * pruned, and overwrites checked against the plan that the user wrote.
 */
final class SkippingRule extends Rule {
  private static final String ENABLED = "spark.snaploom.skipping.enabled";

  final Slot slot;

  SkippingRule(Slot slot) {
    this.slot = slot;
  }

  public TreeNode apply(TreeNode plan) {
    Installation installation = slot.installation;
    if (installation == null || !isEnabled()) {
      return plan;
    }
    try {
      // With subqueries, so that a build side and its copy for dynamic pruning stay the same.
      return ((LogicalPlan) plan).transformDownWithSubqueries(new Swap(installation));
    } catch (Throwable failure) {
      Failures.add(failure);
      return plan;
    }
  }

  private static boolean isEnabled() {
    SQLConf conf = SQLConf.get();
    return !conf.contains(ENABLED) || !"false".equalsIgnoreCase(conf.getConfString(ENABLED));
  }
}
