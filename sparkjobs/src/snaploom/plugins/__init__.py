"""Parts that the core does not know, found by entry points; nothing outside imports them.

The package of a plug-in is light to import: it lists commands of the command line, and names that
are imported when they are first used.
"""
