"""Data contracts of outputs, in the form of the Open Data Contract Standard."""
