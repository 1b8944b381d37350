"""Spark's description of a relation of files: expressions, columns, reader, file states.

The JVM's side of it, in Java, is below `java`. Nothing here knows an index.
"""
