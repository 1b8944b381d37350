"""Kinds of sources: each declared, listed and read in one package."""
