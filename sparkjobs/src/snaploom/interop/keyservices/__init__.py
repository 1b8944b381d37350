"""Key management services that wrap the keys of encrypted indexes, one module for each.

The port that they are behind is in `snaploom.skipping.formats.keys`.
"""
