"""Kinds of sources, as far as declarations show: checks, columns, Secrets, names of datasets.

A kind is one package, a `DeclaredSource` (`declared`), and one line in `registry`. No Spark: how a
kind is listed and read is in `snaploom.engine.sources`, in packages of the same names.
"""
