package snaploom.skipping;

/** Thrown at a part of an expression that has no text of its own: the expression is not shown. */
final class Unwritable extends RuntimeException {
  Unwritable() {
    super(null, null, false, false);
  }
}
