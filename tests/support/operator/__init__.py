"""The operator's surroundings: a cluster in memory, faults, observations, jobs that are played."""
