"""Tables of Iceberg and Delta as sources, as declared.

Which formats are tables is in `snaploom.planning.sources.tableformats`, since indexes ask as well.
Outputs that are tables are in `snaploom.models.outputfolder`.
"""
