"""Queries over other sources: two kinds, `simple` and `complex`, and their placeholders.

What a query may contain is judged by `snaploom.planning.sqlgate`. How it is evaluated is in
`snaploom.engine.sources.queries`.
"""
