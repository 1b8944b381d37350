package snaploom.skipping;

import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/** Puts one node of a plan in the place of another. */
final class Replacement extends AbstractPartialFunction {
  private final Object original;
  private final Object replacement;

  Replacement(Object original, Object replacement) {
    this.original = original;
    this.replacement = replacement;
  }

  public boolean isDefinedAt(Object node) {
    return node == original;
  }

  public Object applyOrElse(Object node, Function1 otherwise) {
    return node == original ? replacement : otherwise.apply(node);
  }
}
