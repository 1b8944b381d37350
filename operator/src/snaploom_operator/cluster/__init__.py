"""The cluster as the operator uses it: the port, and the one adapter that talks to it."""
