"""The gate for SQL in the job: Spark's parser and analyser show the meaning of a text.

Before Spark a text is scanned (`snaploom.planning.sqlgate.lexer`). Here its parsed tree is walked
by lists of what may be there (`kinds`, `judging`), and what it was resolved to is walked again. An
expression runs as the tree that was judged. A query, and an expression over one field of a
FieldTransformer, are parsed once more inside a text of ours, by the same parser under the same
settings, and what this is resolved to is judged as well. `gate` is the only way in, for the engine
and for skipping alike.
"""
