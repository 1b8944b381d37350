"""What users, commands and jobs call: enable, explain, manage, SQL, Python, advice and sorting.

Here a name and a location become a target and a store; what they do then is done further below.
"""
