"""Flint's metadata and names of fields, as plain data.

Where they are kept is in `opensearch`, how Spark sees them in `flintspark`.
"""
