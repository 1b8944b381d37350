"""What the operator knows of the cluster: objects as last seen, and who refers to whom."""
