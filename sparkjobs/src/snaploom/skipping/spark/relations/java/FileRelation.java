package snaploom.skipping;

import java.net.URI;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.FileScan;
import org.apache.spark.sql.execution.datasources.v2.FileTable;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** One relation of files in Spark, the same for both generations of its sources. */
final class FileRelation {
  /** Catalyst's key in the metadata of columns that are not in the data. */
  private static final String METADATA_COLUMN = "__metadata_col";

  /** Delta and Iceberg bring indexes of their own, which say more than a listing does. */
  private static final String INDEXES_OF_SPARK = "org.apache.spark.sql.execution.";

  /** Files of an output, which are listed as Spark lists its own. */
  private static final String PUBLISHED = "snaploom.published.";

  final FileIndex index;
  final StructType dataSchema;
  final StructType partitionSchema;
  final Map names;
  private final String format;
  private final Map options;
  private final String location;
  private final String table;

  private FileRelation(
      FileIndex index,
      StructType dataSchema,
      String format,
      Map options,
      Iterator output,
      Option catalogTable) {
    this.index = index;
    this.dataSchema = dataSchema;
    this.partitionSchema = index.partitionSchema();
    this.format = format;
    this.options = options;
    this.names = names(output);
    CatalogTable found = catalogTable.isDefined() ? (CatalogTable) catalogTable.get() : null;
    this.location = found == null ? null : location(found);
    this.table = found == null ? null : found.identifier().unquotedString();
  }

  private FileRelation(FileRelation original, FileIndex index) {
    this.index = index;
    this.dataSchema = original.dataSchema;
    this.partitionSchema = original.partitionSchema;
    this.format = original.format;
    this.options = original.options;
    this.names = original.names;
    this.location = original.location;
    this.table = original.table;
  }

  /** The same relation with another listing. */
  FileRelation withIndex(FileIndex other) {
    return new FileRelation(this, other);
  }

  /** The relation of a leaf of a plan, or null if it is nothing that a listing describes. */
  static FileRelation of(LogicalPlan leaf) {
    if (leaf instanceof LogicalRelation) {
      LogicalRelation relation = (LogicalRelation) leaf;
      if (relation.isStreaming() || !(relation.relation() instanceof HadoopFsRelation)) {
        return null;
      }
      HadoopFsRelation files = (HadoopFsRelation) relation.relation();
      return known(
          files.location(),
          files.dataSchema(),
          format(files.fileFormat()),
          Scala.map(files.options()),
          Scala.iterator(relation.output()),
          relation.catalogTable());
    }
    if (leaf instanceof DataSourceV2Relation) {
      return of((DataSourceV2Relation) leaf, null);
    }
    if (leaf instanceof DataSourceV2ScanRelation) {
      DataSourceV2ScanRelation scan = (DataSourceV2ScanRelation) leaf;
      if (scan.relation() instanceof DataSourceV2Relation && scan.scan() instanceof FileScan) {
        return of((DataSourceV2Relation) scan.relation(), (FileScan) scan.scan());
      }
    }
    return null;
  }

  private static FileRelation of(DataSourceV2Relation relation, FileScan scan) {
    if (!(relation.table() instanceof FileTable)) {
      return null;
    }
    FileTable files = (FileTable) relation.table();
    return known(
        scan == null ? files.fileIndex() : scan.fileIndex(),
        files.dataSchema(),
        files.formatName().toLowerCase(java.util.Locale.ROOT),
        relation.options(),
        Scala.iterator(relation.output()),
        Option.empty());
  }

  private static FileRelation known(
      FileIndex index,
      StructType dataSchema,
      String format,
      Map options,
      Iterator output,
      Option catalogTable) {
    String kind = index.getClass().getName();
    return kind.startsWith(INDEXES_OF_SPARK) || kind.startsWith(PUBLISHED)
        ? new FileRelation(index, dataSchema, format, options, output, catalogTable)
        : null;
  }

  private static String format(Object fileFormat) {
    return fileFormat instanceof DataSourceRegister
        ? ((DataSourceRegister) fileFormat).shortName().toLowerCase(java.util.Locale.ROOT)
        : fileFormat.getClass().getName();
  }

  private static String location(CatalogTable table) {
    Option uri = table.storage().locationUri();
    return uri.isDefined() ? new Path((URI) uri.get()).toString() : null;
  }

  private static Map names(Iterator output) {
    Map names = new HashMap();
    while (output.hasNext()) {
      AttributeReference column = (AttributeReference) output.next();
      if (!column.metadata().contains(METADATA_COLUMN)) {
        names.put(Long.valueOf(column.exprId().id()), column.name());
      }
    }
    return names;
  }

  /** The part of the header that is the same for every query of a session. */
  void describe(StringBuilder out, Settings settings) {
    out.append("{\"roots\":[");
    Iterator roots = Scala.iterator(index.rootPaths());
    for (int i = 0; roots.hasNext(); i++) {
      out.append(i == 0 ? "" : ",");
      Json.string(out, roots.next().toString());
    }
    out.append("],\"location\":");
    Json.stringOrNull(out, location);
    out.append(",\"table\":");
    Json.stringOrNull(out, table);
    out.append(",\"format\":");
    Json.string(out, format);
    out.append(",\"options\":{");
    Iterator sorted = new TreeMap(options).entrySet().iterator();
    for (int i = 0; sorted.hasNext(); i++) {
      Map.Entry entry = (Map.Entry) sorted.next();
      out.append(i == 0 ? "" : ",");
      Json.string(out, (String) entry.getKey());
      out.append(':');
      Json.stringOrNull(out, (String) entry.getValue());
    }
    out.append("},\"dataSchema\":").append(dataSchema.json());
    out.append(",\"partitionSchema\":").append(partitionSchema.json());
    settings.write(out);
  }
}
