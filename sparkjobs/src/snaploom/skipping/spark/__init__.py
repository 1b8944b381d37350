"""Skipping on Spark, in rooms of which each imports only those below it.

`interfaces`, `targets`, then `optimizer` (query to files) beside `builds` (files to rows), and
`relations`. What needs no Spark, the meaning of predicates above all, is beside this package.
"""
