package snaploom.skipping;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/** JSON text, written piece by piece; a library's tree would cost more than the query's planning. */
final class Json {
  private Json() {}

  static void string(StringBuilder out, String text) {
    out.append('"');
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (c < ' ' || Character.isSurrogate(c) || c == 0x2028 || c == 0x2029 || c == 0x85) {
        // Escaped are also what Python takes for the end of a line, and halves of pairs, so that
        // the text survives any encoding on its way.
        unicode(out, c);
      } else {
        out.append(c);
      }
    }
    out.append('"');
  }

  private static void unicode(StringBuilder out, char c) {
    String digits = Integer.toHexString(c);
    out.append("\\u");
    for (int i = digits.length(); i < 4; i++) {
      out.append('0');
    }
    out.append(digits);
  }

  static void stringOrNull(StringBuilder out, String text) {
    if (text == null) {
      out.append("null");
    } else {
      string(out, text);
    }
  }

  /** Text that is valid UTF-8 as a JSON string, anything else as hexadecimal digits. */
  static void utf8(StringBuilder out, byte[] bytes) {
    String text;
    try {
      text = StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
    } catch (CharacterCodingException invalid) {
      hex(out, bytes);
      return;
    }
    string(out, text);
  }

  static void hex(StringBuilder out, byte[] bytes) {
    out.append("{\"hex\":\"");
    for (int i = 0; i < bytes.length; i++) {
      out.append(Character.forDigit((bytes[i] >> 4) & 15, 16));
      out.append(Character.forDigit(bytes[i] & 15, 16));
    }
    out.append("\"}");
  }
}
