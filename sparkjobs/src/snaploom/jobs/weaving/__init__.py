"""Weaving: joins and publishes the snapshots of outputs as their plan lists them.

Plans are made in `planning`, joins in `engine`, commits in `storage`.
"""
