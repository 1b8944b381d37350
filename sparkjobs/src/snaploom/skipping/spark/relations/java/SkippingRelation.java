package snaploom.skipping;

import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;

/** A relation that says in Spark's EXPLAIN what is read of it; equal to another as any is. */
final class SkippingRelation extends HadoopFsRelation {
  final boolean isForSpark;
  private final String text;

  SkippingRelation(HadoopFsRelation original, FileIndex index, Decision decision) {
    super(
        index,
        original.partitionSchema(),
        original.dataSchema(),
        original.bucketSpec(),
        original.fileFormat(),
        original.options(),
        original.sparkSession());
    this.isForSpark = decision.isForSpark();
    this.text = original.toString() + " " + decision.summary();
  }

  public String toString() {
    return text;
  }
}
