"""The cache of cluster objects, their references, and the queue of runs.

Only `feed` makes requests: it lists what fills the store.
"""
