"""Decisions: pure functions from observations to actions, status and events.

No I/O here: `gather` observes and `apply` performs.
"""
