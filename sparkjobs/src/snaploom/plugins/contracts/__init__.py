"""Contracts of outputs (Open Data Contract Standard)."""
