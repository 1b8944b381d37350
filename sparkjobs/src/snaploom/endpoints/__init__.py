"""Connections to servers that are named in declarations and settings: one gate for all of them."""
