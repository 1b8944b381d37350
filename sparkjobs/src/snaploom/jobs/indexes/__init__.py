"""Skipping indexes as jobs: what is asked, what it is about, and the work in a session of Spark."""
