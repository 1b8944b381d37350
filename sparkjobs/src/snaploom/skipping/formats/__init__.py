"""Forms in which indexes are written: our own, the Xskipper store's and Flint's."""
