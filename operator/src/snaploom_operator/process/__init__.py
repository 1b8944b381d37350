"""The processes of the operator: their parts, how they start, and how they end.

One pass computes everything from the current state: gather, decide, execute.
"""
