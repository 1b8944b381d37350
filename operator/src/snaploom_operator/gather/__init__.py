"""Gathers observations: reads the store, validates and plans declarations.

Observations are defined in `observed`; `decide` uses them.
"""
