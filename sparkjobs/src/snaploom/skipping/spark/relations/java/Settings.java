package snaploom.skipping;

import java.util.Map;
import java.util.TimeZone;
import java.util.TreeMap;
import org.apache.spark.sql.internal.SQLConf;

/** What the running session says about how files are read. */
final class Settings {
  private final Map values = new TreeMap();

  /** Only what was set; null for a name that has its default. */
  Settings(SQLConf conf, String[] names) {
    for (int i = 0; i < names.length; i++) {
      values.put(names[i], conf.contains(names[i]) ? conf.getConfString(names[i]) : null);
    }
  }

  /** Those of the session that runs in this thread. */
  Settings(String[] names) {
    this(SQLConf.get(), names);
  }

  boolean isSameAs(Settings other) {
    return values.equals(other.values);
  }

  void write(StringBuilder out) {
    out.append(",\"settings\":{");
    String separator = "";
    for (Object item : values.entrySet()) {
      Map.Entry entry = (Map.Entry) item;
      out.append(separator);
      separator = ",";
      Json.string(out, (String) entry.getKey());
      out.append(':');
      Json.stringOrNull(out, (String) entry.getValue());
    }
    out.append("},\"zone\":");
    Json.string(out, TimeZone.getDefault().getID());
  }
}
