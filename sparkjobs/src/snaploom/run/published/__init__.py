"""Published snapshots: checked, compared, sorted and deleted."""
