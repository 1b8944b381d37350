"""Fills the store: kopf's watches, and periodic lists that find missed changes.

The store itself is in `store`; reconciling is in `process`.
"""
