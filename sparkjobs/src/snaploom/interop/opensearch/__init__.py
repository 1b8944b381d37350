"""OpenSearch as a store of skipping indexes: its client, documents, and the store behind the port.

Needs the extra `opensearch`. The form of the metadata in it is `flint`'s.
"""
