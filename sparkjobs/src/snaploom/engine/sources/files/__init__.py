"""Files: matches of globs, the snapshots that paths or columns give them, and their rows.

Checks of what Spark would pass over without an error lie here too, those of text in `text`. Tables
of Iceberg and Delta, which have files of their own, are in `snaploom.engine.sources.tables`.
"""
