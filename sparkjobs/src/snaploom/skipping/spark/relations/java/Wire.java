package snaploom.skipping;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.zip.Deflater;
import java.util.zip.DeflaterOutputStream;

/**
 * Texts on their way to Python.
 *
 * <p>What does not go out in one write (8 KiB) waits for the other side to acknowledge the first
 * part, which it puts off for 40 ms: longer than all the rest of a decision. Names of files pack
 * well, so that the texts of some hundred files go out at once.
 */
final class Wire {
  /** Begins a packed text; no request begins so. */
  private static final String PACKED = "packed:";
  /** Characters that go out at once, with what Py4J adds. */
  private static final int AT_ONCE = 8000;
  /** Characters from which on packing takes longer than waiting. */
  private static final int TOO_LONG = 1 << 20;

  private Wire() {}

  static String packed(String text) {
    if (text.length() <= AT_ONCE || text.length() > TOO_LONG) {
      return text;
    }
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    Deflater deflater = new Deflater(Deflater.BEST_SPEED);
    try {
      DeflaterOutputStream out = new DeflaterOutputStream(bytes, deflater);
      out.write(text.getBytes(StandardCharsets.UTF_8));
      out.close();
    } catch (IOException impossible) {
      return text;
    } finally {
      deflater.end();
    }
    return PACKED + Base64.getEncoder().encodeToString(bytes.toByteArray());
  }
}
