"""Access to Spark: the gate for SQL of users, the JVM, types and failures."""
