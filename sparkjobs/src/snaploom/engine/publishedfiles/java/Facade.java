package snaploom.published;

import java.util.Map;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.DataSource$;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.v2.FileDataSourceV2;
import org.apache.spark.sql.types.DataType$;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** What Python calls. */
public final class Facade {
  public Facade() {}

  /**
   * A frame of published files.
   *
   * @param session the session that reads.
   * @param format Spark's name of a file format.
   * @param options of its reader.
   * @param schema of the files, as JSON.
   * @param partition a schema with the partition column only.
   * @param data folder of the folders of snapshots.
   * @param folders names of these, a line each.
   * @param files from positions to files, see `Snapshots`.
   * @param identity which versions of the snapshots these are.
   * @param bytes length of all files, or -1.
   */
  public Object frame(
      Object session,
      String format,
      Map options,
      String schema,
      String partition,
      String data,
      String folders,
      Function files,
      String identity,
      long bytes)
      throws Exception {
    SparkSession spark = (SparkSession) session;
    StructType column = ((StructType) DataType$.MODULE$.fromJson(partition)).asNullable();
    StructType columns = ((StructType) DataType$.MODULE$.fromJson(schema)).asNullable();
    Snapshots snapshots =
        new Snapshots(identity, bytes, folders, column.fields()[0].dataType(), files);
    return spark.baseRelationToDataFrame(
        new HadoopFsRelation(
            new PublishedFiles(spark, data, column, snapshots),
            column,
            columns,
            Option.empty(),
            fileFormat(spark, format),
            CaseInsensitiveMap$.MODULE$.apply(Scala.map(options)),
            spark));
  }

  /** Spark's first generation of sources: the second one takes no index of files. */
  private static FileFormat fileFormat(SparkSession spark, String format) throws Exception {
    Class named = DataSource$.MODULE$.lookupDataSource(format, spark.sessionState().conf());
    Object made = named.getDeclaredConstructor(new Class[0]).newInstance(new Object[0]);
    if (made instanceof FileDataSourceV2) {
      made =
          ((FileDataSourceV2) made)
              .fallbackFileFormat()
              .getDeclaredConstructor(new Class[0])
              .newInstance(new Object[0]);
    }
    return (FileFormat) made;
  }
}
