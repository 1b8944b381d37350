"""What is done with published snapshots: compared, checked, estimated from, sorted, deleted."""
