package snaploom.skipping;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.concurrent.Callable;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.execution.datasources.v2.FileScan;

/** A scan of the second generation with a guard; equal to another one as the scans inside are. */
final class GuardedFiles implements InvocationHandler {
  private final FileScan skipping;
  private final FileScan whole;

  private GuardedFiles(FileScan skipping, FileScan whole) {
    this.skipping = skipping;
    this.whole = whole;
  }

  /**
   * A scan as Spark plans it.
   *
   * @param skipping lists what is kept
   * @param whole the same with every file
   */
  static FileScan of(FileScan skipping, FileScan whole) {
    return (FileScan)
        Proxy.newProxyInstance(
            FileScan.class.getClassLoader(),
            new Class[] {FileScan.class},
            new GuardedFiles(skipping, whole));
  }

  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    String name = method.getName();
    if (name.equals("toBatch")) {
      return proxy;
    }
    if (name.equals("planInputPartitions")) {
      return partitions();
    }
    if (name.equals("equals")) {
      return Boolean.valueOf(skipping.equals(unwrapped(arguments[0])));
    }
    try {
      return method.invoke(skipping, arguments);
    } catch (InvocationTargetException failure) {
      throw failure.getCause();
    }
  }

  private InputPartition[] partitions() {
    Guard guard = new Guard();
    guard.begin();
    Object[] read;
    try {
      read = skipping.planInputPartitions();
    } finally {
      guard.end();
    }
    Callable everything =
        new Callable() {
          public Object call() {
            return whole.planInputPartitions();
          }
        };
    Object[] guarded = guard.over(read, false, everything);
    return (InputPartition[]) Arrays.copyOf(guarded, guarded.length, InputPartition[].class);
  }

  private static Object unwrapped(Object other) {
    if (other == null || !Proxy.isProxyClass(other.getClass())) {
      return other;
    }
    InvocationHandler handler = Proxy.getInvocationHandler(other);
    return handler instanceof GuardedFiles ? ((GuardedFiles) handler).skipping : other;
  }
}
