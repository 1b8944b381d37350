"""The engine: Spark does the reading, weaving and writing; the session is always handed in."""
