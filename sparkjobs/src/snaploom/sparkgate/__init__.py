"""The gate for SQL in the job: Spark's own parser and analyser are asked what a text comes to.

Before Spark a text is scanned (`snaploom.planning.sqlgate.lexer`). Here its parsed tree is walked
by lists of what may be there (`kinds`, `judging`), and what it was resolved to is walked again. The
tree that was judged is the one that runs: no text is parsed a second time. `gate` is the only way
in, for the engine and for skipping alike.
"""
