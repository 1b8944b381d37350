"""Gathers observations: reads the store, validates and plans declarations.

Observations are defined in `decision`; `decide` uses them.
"""
