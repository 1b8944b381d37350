"""Files that Hadoop's globs match, as declared.

What files and tables of `hdfsLike` share is in `snaploom.planning.sources.hdfslike`; which formats
and options may be read, also by indexes, in `snaploom.planning.fileformats`.
"""
