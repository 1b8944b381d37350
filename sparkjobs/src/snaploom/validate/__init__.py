"""Findings about the kinds, across all resources."""
