"""The library for people who write Python: `snaploom.load` and its results.

Each method calls what the command of its name calls; no rule of its own is here. Commands and
their text are in `snaploom.cli`.
"""
