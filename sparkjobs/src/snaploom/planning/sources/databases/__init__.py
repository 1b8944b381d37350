"""Tables of databases: which drivers, addresses, options and conditions a source may declare.

Engine and checks read the same table of drivers, so that nothing is allowed here and refused there.
Connections are in `snaploom.engine.sources.databases`.
"""
