"""Decisions: pure functions from what was observed to what is to be done, one file a subject."""
