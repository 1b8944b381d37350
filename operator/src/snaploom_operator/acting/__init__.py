"""What changes the cluster: actions, statuses and events."""
