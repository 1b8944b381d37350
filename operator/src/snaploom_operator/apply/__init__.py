"""The effects of a decision: performs actions, writes statuses, posts events.

What to do is decided in `decide`; requests to the API server are in `cluster`.
"""
