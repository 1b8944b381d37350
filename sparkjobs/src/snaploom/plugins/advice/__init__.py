"""Advice about indexes and orders of rows, and sorting of files and published snapshots."""
