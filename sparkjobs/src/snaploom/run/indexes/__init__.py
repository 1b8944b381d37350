"""Skipping indexes as jobs."""
