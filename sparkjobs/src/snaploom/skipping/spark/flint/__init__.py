"""Flint's ways into Spark: the data source `flint`, and its builder of skipping indexes."""
