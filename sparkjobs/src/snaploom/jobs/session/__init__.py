"""The Spark session and its surroundings: settings, folder stores, loggers, error translation.

Nothing else builds a session; what runs in one is in the other packages of `jobs`.
"""
