"""From files to rows: by footers, by Arrow, or by one distributed pass, and clustered writing.

Which files are to be read is decided in `targets`; what is kept of them by each type of index.
"""
