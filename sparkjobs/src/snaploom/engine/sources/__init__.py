"""Sources: which snapshots a declared source has, and the data of one of them."""
