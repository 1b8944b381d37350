"""Planning: pure functions from declarations and snapshots to the steps of a run."""
