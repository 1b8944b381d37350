"""The effects of a decision: performs actions, writes statuses, posts events.

`decide` has the decisions; requests to the API server are in `cluster`.
"""
