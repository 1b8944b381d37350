"""From a query to the files it needs: the rule, its requests, and one decision for each.

What a condition means for columns is in `translation`. Nothing here opens a file that is indexed.
"""
