package snaploom.skipping;

import java.util.function.Function;

/** What one call to `install` left for a session and those that are made from it. */
final class Installation {
  /** Begins an answer that is not one but a failure; the rest is its message. */
  private static final String FAILED = "!";

  final String[] settingNames;
  private final Function decider;
  private final Function filter;

  /** Two functions of Python from a text: signs or null, and a Boolean. */
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

  /** One sign a file, '0' to drop it and '1' to keep it; null to keep all. */
  String decide(String request, int files) {
    Object answer = call(decider, request);
    if (answer == null) {
      return null;
    }
    String signs = answer.toString();
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
    return signs;
  }

  private static Object call(Function function, String text) {
    Object answer;
    try {
      answer = function.apply(text);
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
