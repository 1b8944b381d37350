"""Submits runs: applications of each submitter, their ConfigMaps and pods, local processes.

All is built and parsed as data; only `localrunner` and `localprocess` have effects.
"""
