package snaploom.skipping;

import java.lang.ref.SoftReference;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/**
 * The listings that were sent to Python last, each under a name: a table of 100,000 files has 10 MB
 * of paths, which need not go to Python with every query.
 *
 * <p>A name is given once, in all JVMs. A listing has the name of another one only if all of its
 * files are the same, compared one by one. The garbage collector may take what memory is needed for.
 */
final class KnownListings {
  /** As many as Python keeps: `LISTINGS_KEPT` in `decision.py`. */
  private static final int MOST = 16;

  private final String begin = UUID.randomUUID() + ".";
  private long given = 0L;
  private final LinkedHashMap byName = new LinkedHashMap();

  synchronized String newName() {
    given++;
    return begin + given;
  }

  synchronized void add(String name, Listing listing) {
    byName.remove(name);
    byName.put(name, new SoftReference(listing));
    Iterator oldest = byName.keySet().iterator();
    while (byName.size() > MOST) {
      oldest.next();
      oldest.remove();
    }
  }

  /** Under which name the same files were sent; null if they were not, or if that was forgotten. */
  String nameOf(Listing listing) {
    Iterator known = entries().iterator();
    while (known.hasNext()) {
      Map.Entry entry = (Map.Entry) known.next();
      Listing other = (Listing) ((SoftReference) entry.getValue()).get();
      if (other != null && listing.isSameAs(other)) {
        add((String) entry.getKey(), other);
        return (String) entry.getKey();
      }
    }
    return null;
  }

  private synchronized List entries() {
    return new ArrayList(new LinkedHashMap(byName).entrySet());
  }
}
