package snaploom.skipping;

/** Counts what went wrong; a failure keeps every file and never reaches the query. */
final class Failures {
  private static final int LONGEST_MESSAGE = 2000;

  private static long count = 0L;
  private static String last = null;

  private Failures() {}

  static synchronized void add(String message) {
    count++;
    boolean isLong = message.length() > LONGEST_MESSAGE;
    last = isLong ? message.substring(0, LONGEST_MESSAGE) : message;
  }

  /** Counts a failure, also an expression too deep for the stack; only a dying JVM may go on. */
  static void add(Throwable failure) {
    if (failure instanceof OutOfMemoryError || failure instanceof InternalError) {
      throw (VirtualMachineError) failure;
    }
    if (failure instanceof InterruptedException) {
      Thread.currentThread().interrupt();
    }
    add(String.valueOf(failure));
  }

  static synchronized long count() {
    return count;
  }

  static synchronized String last() {
    return last;
  }
}
