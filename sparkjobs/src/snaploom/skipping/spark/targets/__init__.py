"""Targets of indexes: a folder or a table, opened and listed, with names and conditions.

How rows are made of its files is in `builds`, how a query is answered in `optimizer`.
"""
