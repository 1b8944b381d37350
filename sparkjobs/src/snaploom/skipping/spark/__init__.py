"""Skipping on Spark, in rooms of which each imports only those below it.

`interfaces`, `targets`, then `optimizer` (query to files) beside `builds` (files to rows), and
`relations`. Code that needs no Spark, such as the meaning of predicates, is beside this package.
"""
