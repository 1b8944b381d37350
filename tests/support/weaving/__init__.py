"""Sessions of Spark, small models that are woven, and the oracle in plain Python."""
