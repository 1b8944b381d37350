"""Targets of indexes: a folder or a table, opened and listed, with names and conditions.

`builds` turns its files into rows, `optimizer` answers queries.
"""
