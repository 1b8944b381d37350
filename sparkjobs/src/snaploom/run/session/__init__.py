"""Sessions of Spark and their JVM."""
