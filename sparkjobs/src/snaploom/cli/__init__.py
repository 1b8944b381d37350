"""The command line: one file a command, thin over the library.

Parses options and prints results; the work itself is in `jobs` and below.
"""
