"""The library for people who write Python: `snaploom.load`, and what it returns.

Each method calls what the command of its name calls; no rule of its own is here. Commands and
their text are in `snaploom.cli`.
"""
