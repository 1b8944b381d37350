"""Loads YAML and JSON files as typed resources, with the position of every key and value.

Rules between resources are in `planning.validation`.
"""
