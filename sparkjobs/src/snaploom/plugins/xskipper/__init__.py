"""Metadata stores of Xskipper: imported, exported and kept beside ours."""
