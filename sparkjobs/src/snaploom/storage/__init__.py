"""Object stores, the manifest log, publication and garbage collection; free of Spark (rule P6).

Stores that need Spark's JVM are in `hadoop`.
"""
