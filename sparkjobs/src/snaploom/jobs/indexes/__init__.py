"""Jobs on skipping indexes: requests, targets, and the work in a Spark session.

The indexes themselves are in `skipping`.
"""
