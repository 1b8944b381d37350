"""From a query to the files it needs: the rule, its requests, and one decision for each.

`translation` has the meaning of conditions for columns. Nothing here opens a file that is indexed.
"""
