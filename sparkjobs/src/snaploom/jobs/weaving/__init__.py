"""Weaving: from a plan to published snapshots, one after another; outputs beside each other."""
