package snaploom.skipping;

import scala.collection.immutable.Seq;

/** The rest of a listing. */
final class Kept {
  final Seq directories;
  final int count;
  final long bytes;

  Kept(Seq directories, int count, long bytes) {
    this.directories = directories;
    this.count = count;
    this.bytes = bytes;
  }
}
