package snaploom.skipping;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.Function;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;

/** Entry points for Python. */
public final class Facade {
  public Facade() {}

  public List describe(Dataset frame, List settingNames) {
    List headers = new ArrayList();
    Iterator relations = Inspection.relations(frame.queryExecution().analyzed()).iterator();
    while (relations.hasNext()) {
      headers.add(
          Inspection.header((FileRelation) relations.next(), frame, texts(settingNames)));
    }
    return headers;
  }

  public String listing(Dataset frame, List settingNames) {
    return Wire.packed(Inspection.listing(frame, texts(settingNames)));
  }

  public String serialise(Dataset frame) {
    return Inspection.serialise(frame);
  }

  public void install(
      SparkSession session, Function decider, Function filter, List settingNames) {
    Sessions.install(session, new Installation(decider, filter, texts(settingNames)));
  }

  public void uninstall(SparkSession session) {
    Sessions.uninstall(session);
  }

  public boolean isInstalled(SparkSession session) {
    return Sessions.isInstalled(session);
  }

  /** Ends of files (see `RemoteFiles`); paths and lengths have a line each. */
  public byte[] footers(SparkSession session, String paths, String lengths, int first)
      throws Exception {
    String[] numbers = lengths.split("\n");
    long[] parsed = new long[numbers.length];
    for (int i = 0; i < parsed.length; i++) {
      parsed[i] = Long.parseLong(numbers[i]);
    }
    return RemoteFiles.footers(
        paths.split("\n"), parsed, first, session.sessionState().newHadoopConf());
  }

  /** States of files (see `RemoteFiles`); paths have a line each. */
  public String states(SparkSession session, String paths) throws Exception {
    return RemoteFiles.states(paths.split("\n"), session.sessionState().newHadoopConf());
  }

  public long failures() {
    return Failures.count();
  }

  public String lastFailure() {
    return Failures.last();
  }

  private static String[] texts(List values) {
    String[] texts = new String[values.size()];
    for (int i = 0; i < texts.length; i++) {
      texts[i] = (String) values.get(i);
    }
    return texts;
  }
}
