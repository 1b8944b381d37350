"""Files that Hadoop's globs match, and what may be declared of them.

What files and tables of `hdfsLike` share is in `snaploom.planning.sources.hdfslike`; which formats
and options may be read, also by indexes, in `snaploom.planning.fileformats`.
"""
