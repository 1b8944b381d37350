"""File formats of indexes: our own, the Xskipper store's and Flint's."""
