"""Eager validation: pure, without Spark, network or clock; every finding at once."""
