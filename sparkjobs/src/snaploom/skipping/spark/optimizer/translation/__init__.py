"""From Catalyst's expressions to predicates: `catalyst.predicate` is the way in.

It knows columns and types, and no index, file or session: those are in `optimizer`.
"""
