package snaploom.skipping;

import java.util.function.Function;

/** Result of one call to `install`, for a session and those that are made from it. */
final class Installation {
  /** Begins an answer that is not one but a failure; the rest is its message. */
  private static final String FAILED = "!";
  /** The answer to a request that only names its files: they are to be sent once more. */
  private static final String FORGOTTEN = "?";

  final String[] settingNames;
  private final Function decider;
  private final Function filter;
  private final KnownListings known = new KnownListings();

  /** Two functions of Python from a text: an answer or null, and a Boolean. */
  Installation(Function decider, Function filter, String[] settingNames) {
    this.decider = decider;
    this.filter = filter;
    this.settingNames = settingNames;
  }

  /** Asked with the header alone, before any file is listed. */
  boolean concerns(FileRelation relation) {
    StringBuilder header = new StringBuilder();
    relation.describe(header, new Settings(settingNames));
    Object answer = call(filter, header.append('}').toString());
    return Boolean.TRUE.equals(answer);
  }

  /** Null to keep all files. The header of the request is still open. */
  Answer decide(String header, Listing listing) {
    int files = listing.count();
    String name = known.nameOf(listing);
    Object text = name == null ? FORGOTTEN : call(decider, named(header, name) + '}');
    if (FORGOTTEN.equals(text)) {
      name = known.newName();
      StringBuilder whole = new StringBuilder(named(header, name));
      listing.write(whole);
      text = call(decider, whole.toString());
      known.add(name, listing);
    }
    if (text == null) {
      return null;
    }
    Answer answer = new Answer(text.toString());
    String signs = answer.signs;
    if (signs.length() != files) {
      Failures.add("an answer about " + signs.length() + " files of " + files);
      return null;
    }
    for (int i = 0; i < files; i++) {
      char sign = signs.charAt(i);
      if (sign != '0' && sign != '1') {
        Failures.add("an answer with a sign that is neither 0 nor 1");
        return null;
      }
    }
    return answer;
  }

  private static String named(String header, String listing) {
    return header + ",\"listing\":\"" + listing + "\"";
  }

  private static Object call(Function function, String text) {
    Object answer;
    try {
      answer = function.apply(Wire.packed(text));
    } catch (Throwable failure) {
      Failures.add(failure);
      return null;
    }
    if (answer instanceof String && ((String) answer).startsWith(FAILED)) {
      Failures.add(((String) answer).substring(FAILED.length()));
      return null;
    }
    return answer;
  }
}
