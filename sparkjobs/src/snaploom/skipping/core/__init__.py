"""Skipping without Spark: terms, predicates, files, and the proof that a file is not needed."""
