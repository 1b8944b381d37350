"""Runs: sessions of Spark, the weaving of outputs, reports, and jobs of a cluster."""
