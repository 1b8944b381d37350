"""Tables of Iceberg and Delta as sources, each at one version for the whole run.

What Snaploom publishes is read as files (`snaploom.engine.sources.files.publishedfolder`) or by
`snaploom.reader`.
"""
