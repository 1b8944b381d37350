package snaploom.skipping;

import java.util.function.Function;

/** What one call to `install` left for a session and those that are made from it. */
final class Installation {
  /** Begins an answer that is not one but a failure; the rest is its message. */
  static final String FAILED = "!";

  final Function decider;
  final Function concerns;
  final String[] settingNames;

  Installation(Function decider, Function concerns, String[] settingNames) {
    this.decider = decider;
    this.concerns = concerns;
    this.settingNames = settingNames;
  }
}
