"""Jobs: what a laptop and a cluster run. The only layer that builds a SparkSession."""
