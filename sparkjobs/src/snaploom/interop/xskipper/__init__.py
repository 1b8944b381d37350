"""Xskipper's Parquet metadata stores, of version 0 to 4: read, written, imported and exported.

`indexstore` is the form XSKIPPER of a folder, `interchange` what commands import and export.
"""
