"""Indexes for tests, the contract of their stores, and the proof that no row is lost."""
