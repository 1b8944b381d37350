package snaploom.skipping;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Tasks (`Callable`) done by several threads at once. */
final class Parallel {
  private Parallel() {}

  /** Results of tasks, in order, on a limited number of threads. */
  static List all(List tasks, int threads) throws Exception {
    ExecutorService pool =
        Executors.newFixedThreadPool(Math.max(1, Math.min(threads, tasks.size())));
    try {
      List found = new ArrayList();
      Iterator answers = pool.invokeAll(tasks).iterator();
      while (answers.hasNext()) {
        found.add(((Future) answers.next()).get());
      }
      return found;
    } finally {
      pool.shutdownNow();
    }
  }
}
