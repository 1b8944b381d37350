"""Object stores, the manifest log, publication and garbage collection; free of Spark (D20)."""
