"""Runs jobs as local processes, for `snaploom operator run --local`.

The form of a local run's ConfigMap is in `submitters.local`.
"""
