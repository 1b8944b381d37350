"""What can be indexed: a folder or a table, opened, listed, and with its names and conditions.

How rows are made of its files is in `builds`, how a query is answered in `optimizer`.
"""
