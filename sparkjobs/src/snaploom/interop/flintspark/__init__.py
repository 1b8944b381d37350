"""Flint in Spark: its builder of indexes, and its data source over indexes of OpenSearch.

Flint's SQL is our own as well, and so in `snaploom.skipping.statements`.
"""
