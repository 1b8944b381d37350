"""Jobs that a laptop and a cluster run; the only layer that builds a SparkSession.

Sources and joins are in `engine`, commits in `storage`, indexes in `skipping`.
"""
