"""Formats and protocols of other programs: one package for each, none of which the rest imports.

They register by entry points (`pyproject.toml`); without them everything else works as it is.
"""
