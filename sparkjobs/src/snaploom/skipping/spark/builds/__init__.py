"""From files to rows: by footers, by Arrow, or by one distributed pass, and clustered writing.

`targets` decides which files are read; each type of index, what is kept of them.
"""
