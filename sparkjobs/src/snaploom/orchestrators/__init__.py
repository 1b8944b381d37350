"""Outputs in orchestrators of others, as methods of a project; each needs an extra."""
