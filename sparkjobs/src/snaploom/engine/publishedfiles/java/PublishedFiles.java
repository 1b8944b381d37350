package snaploom.published;

import java.io.FileNotFoundException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InterpretedPredicate;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex$;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Seq;

/**
 * The files of published snapshots, as the manifest lists them.
 *
 * <p>Folders are looked into when a query has chosen its partitions, and only theirs: for the times
 * and the places of files, which the manifest does not have. What is there and not published is left
 * out; what is published and not there, or of another length, is an error.
 */
final class PublishedFiles implements FileIndex {
  private final SparkSession session;
  private final Path data;
  private final StructType partitionSchema;
  private final Snapshots snapshots;

  /** By position of the snapshot; files of a name never change. */
  private final Map known = new ConcurrentHashMap();

  PublishedFiles(
      SparkSession session, String data, StructType partitionSchema, Snapshots snapshots) {
    this.session = session;
    this.data = new Path(data);
    this.partitionSchema = partitionSchema;
    this.snapshots = snapshots;
  }

  public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
    List chosen = chosen(partitionFilters);
    look(chosen);
    List directories = new ArrayList();
    for (Object position : chosen) {
      directories.add(
          new PartitionDirectory(
              snapshots.value(((Integer) position).intValue()), (Seq) known.get(position)));
    }
    return Scala.seq(directories);
  }

  /** Positions of the snapshots that meet all conditions on the partition column. */
  private List chosen(Seq filters) {
    List conditions = new ArrayList();
    Iterator given = Scala.iterator(filters);
    while (given.hasNext()) {
      PartitionValue value = new PartitionValue(partitionSchema.fields()[0].dataType());
      Object bound = ((Expression) given.next()).transform(value);
      conditions.add(new InterpretedPredicate((Expression) bound));
    }
    List chosen = new ArrayList();
    for (int position = 0; position < snapshots.count(); position++) {
      boolean isChosen = true;
      for (int i = 0; i < conditions.size() && isChosen; i++) {
        isChosen = ((InterpretedPredicate) conditions.get(i)).eval(snapshots.value(position));
      }
      if (isChosen) {
        chosen.add(Integer.valueOf(position));
      }
    }
    return chosen;
  }

  /** Looks into folders of snapshots that are not known yet; many at once, as Spark itself does. */
  private synchronized void look(List positions) {
    List unknown = new ArrayList();
    List folders = new ArrayList();
    for (Object position : positions) {
      if (!known.containsKey(position)) {
        unknown.add(position);
        folders.add(new Path(data, snapshots.folder(((Integer) position).intValue())));
      }
    }
    if (unknown.isEmpty()) {
      return;
    }
    Map lengths = snapshots.files(unknown);
    Map found = listed(folders);
    for (int i = 0; i < unknown.size(); i++) {
      Map inside = (Map) found.get(folders.get(i));
      known.put(
          unknown.get(i), published((Path) folders.get(i), inside, (Map) lengths.get(unknown.get(i))));
    }
  }

  /** Files by name, of each folder. */
  private Map listed(List folders) {
    Map found = new HashMap();
    Iterator all =
        Scala.iterator(
            InMemoryFileIndex$.MODULE$.bulkListLeafFiles(
                Scala.seq(folders),
                session.sessionState().newHadoopConf(),
                null,
                session,
                Scala.emptyMap()));
    while (all.hasNext()) {
      Tuple2 folder = (Tuple2) all.next();
      Map inside = new HashMap();
      Iterator files = Scala.iterator((scala.collection.Iterable) folder._2());
      while (files.hasNext()) {
        FileStatus file = (FileStatus) files.next();
        inside.put(file.getPath().getName(), file);
      }
      found.put(folder._1(), inside);
    }
    return found;
  }

  private Seq published(Path folder, Map inside, Map lengths) {
    List files = new ArrayList();
    for (Object each : lengths.entrySet()) {
      Map.Entry expected = (Map.Entry) each;
      Object name = expected.getKey();
      FileStatus file = inside == null ? null : (FileStatus) inside.get(name);
      if (file == null) {
        throw new IllegalArgumentException(
            folder + "/" + name + " is not there, although the manifest lists it as published; "
                + "`snaploom check` lists what is missing");
      }
      if (file.getLen() != ((Long) expected.getValue()).longValue()) {
        throw new IllegalArgumentException(
            folder + "/" + name + " has " + file.getLen() + " bytes, and " + expected.getValue()
                + " when it was published; `snaploom check` lists what is damaged");
      }
      if (file.getLen() > 0) {
        files.add(new FileStatusWithMetadata(file, Scala.emptyMap()));
      }
    }
    return Scala.seq(files);
  }

  public long sizeInBytes() {
    return snapshots.bytes < 0
        ? session.sessionState().conf().defaultSizeInBytes()
        : snapshots.bytes;
  }

  public Seq rootPaths() {
    List roots = new ArrayList();
    roots.add(data);
    return Scala.seq(roots);
  }

  public String[] inputFiles() {
    List paths = new ArrayList();
    Iterator directories = Scala.iterator(listFiles(Scala.seq(new ArrayList()), Scala.seq(new ArrayList())));
    while (directories.hasNext()) {
      Iterator files = Scala.iterator(((PartitionDirectory) directories.next()).files());
      while (files.hasNext()) {
        paths.add(((FileStatusWithMetadata) files.next()).getPath().toUri().toString());
      }
    }
    return (String[]) paths.toArray(new String[0]);
  }

  public void refresh() {
    known.clear();
  }

  public StructType partitionSchema() {
    return partitionSchema;
  }

  public Option metadataOpsTimeNs() {
    return Option.empty();
  }

  /** Spark 4.3 asks for it: the files of a frame are those of one state of the manifest. */
  public boolean isTimeTravel() {
    return false;
  }

  public boolean equals(Object other) {
    return other instanceof PublishedFiles
        && ((PublishedFiles) other).data.equals(data)
        && ((PublishedFiles) other).snapshots.identity.equals(snapshots.identity);
  }

  public int hashCode() {
    return data.hashCode();
  }

  public String toString() {
    return "Published(" + data + ", " + snapshots.count() + " snapshots)";
  }
}
