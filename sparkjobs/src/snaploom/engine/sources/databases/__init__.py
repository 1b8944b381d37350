"""Databases: connections of the driver's JVM, and tables that Spark reads by JDBC.

What may be declared of them, addresses and options are in `snaploom.planning`; no SQL of users is
judged here, and no other kind of source is known.
"""
