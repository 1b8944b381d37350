"""Skipping indexes in OpenSearch in Flint's form, and the data source `flint`."""
