package snaploom.skipping;

/** Holds what is installed for a family of sessions: null when nothing is. */
final class Slot {
  volatile Installation installation = null;
}
