"""Output folders, faulty stores, the contract of object stores, the explorer of interleavings."""
