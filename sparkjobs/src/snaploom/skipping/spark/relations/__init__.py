"""How Spark describes a relation of files: expressions, columns, reader, states of its files.

The JVM's side of it, in Java, is below `java`. Nothing here knows an index.
"""
