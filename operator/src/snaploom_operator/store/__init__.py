"""The cache of cluster objects, their references, and the queue of runs.

It is filled by `watch`, and makes no requests itself.
"""
