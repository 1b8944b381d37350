"""Submitters: build the application object of a run, and parse it back.

Pure; requests are made in `apply`, and local jobs run in `local`.
"""
