package snaploom.skipping;

import java.util.Map;
import java.util.TimeZone;
import java.util.TreeMap;
import org.apache.spark.internal.config.ConfigEntry;
import org.apache.spark.package$;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;

/** Settings of the running session for reading files and evaluating expressions. */
final class Settings {
  private static final String OF_SQL = "spark.sql.";
  /** Begins a requested name that is the prefix of settings without a say in expressions. */
  private static final String HARMLESS = "!";

  private final Map values = new TreeMap();
  private final String[] names;

  /** All settings of SQL that differ from Spark's defaults and may change an expression's value. */
  private final Map changed = new TreeMap();

  /** Only what was set; null for a name that has its default. */
  Settings(SQLConf conf, String[] names) {
    this.names = names;
    for (int i = 0; i < names.length; i++) {
      if (!names[i].startsWith(HARMLESS)) {
        values.put(names[i], conf.contains(names[i]) ? conf.getConfString(names[i]) : null);
      }
    }
    for (Object item : Scala.map(conf.getAllConfs()).entrySet()) {
      Map.Entry entry = (Map.Entry) item;
      String name = (String) entry.getKey();
      if (name.startsWith(OF_SQL) && !isHarmless(name, names)) {
        ConfigEntry known = SQLConf$.MODULE$.getConfigEntry(name);
        if (known == null || !known.defaultValueString().equals(entry.getValue())) {
          changed.put(name, entry.getValue());
        }
      }
    }
    // Defaults and functions are those of a version; letters and time zones are Java's.
    String version = package$.MODULE$.SPARK_VERSION();
    changed.put("version", "Spark " + version + ", Java " + Runtime.version().feature());
  }

  /** Those of the session that runs in this thread. */
  Settings(String[] names) {
    this(SQLConf.get(), names);
  }

  private static boolean isHarmless(String name, String[] names) {
    for (int i = 0; i < names.length; i++) {
      if (names[i].startsWith(HARMLESS) && name.startsWith(names[i].substring(1))) {
        return true;
      }
    }
    return false;
  }

  boolean isSameAs(Settings other) {
    return values.equals(other.values);
  }

  boolean evaluatesAs(Settings other) {
    return changed.equals(other.changed);
  }

  /** Whether expressions still have the same values with the settings that there are now. */
  boolean isEvaluatedAlike(SQLConf now) {
    return evaluatesAs(new Settings(now, names));
  }

  void write(StringBuilder out) {
    out.append(",\"settings\":");
    object(out, values);
    out.append(",\"evaluation\":");
    object(out, changed);
    out.append(",\"zone\":");
    Json.string(out, TimeZone.getDefault().getID());
  }

  private static void object(StringBuilder out, Map texts) {
    String separator = "{";
    for (Object item : texts.entrySet()) {
      Map.Entry entry = (Map.Entry) item;
      out.append(separator);
      separator = ",";
      Json.string(out, (String) entry.getKey());
      out.append(':');
      Json.stringOrNull(out, (String) entry.getValue());
    }
    out.append(texts.isEmpty() ? "{}" : "}");
  }
}
