"""The catalogue of codes of findings, in parts by their numbers."""
