"""The Parquet metadata store of Xskipper: versions 0 to 4 read, version 4 written."""
