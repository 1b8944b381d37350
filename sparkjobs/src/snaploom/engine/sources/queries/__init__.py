"""Queries over other sources: `simple` over each snapshot of one, `complex` over several.

Both read what they are over through its reader, whatever kind it is. What a query may contain is
judged by `snaploom.planning.sqlgate` and `snaploom.sparkgate`.
"""
