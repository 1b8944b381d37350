"""Entry points for users, commands and jobs: enable, explain, manage, SQL and Python.

Here a name and a location become a target and a store; what they do then is done further below.
"""
